"""Pictures: their data against evaluation, and the forms that they take."""
