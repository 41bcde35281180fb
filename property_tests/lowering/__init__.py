"""Tiles, dispatch, variants, the program, the reference machine, emitted text."""
