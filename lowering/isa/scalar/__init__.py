"""Scalar PTX, executed on the numbers of all lanes: what a block of text that computes one number of others means.

`machine.ScalarMeaning` is such a meaning, of the text alone.  No program, no layout and no compiler may enter: the room
needs numpy only, and what it holds can be pickled.
"""
