"""The views: each a function from layouts to a picture, in a file of its own.  They know no renderer."""
