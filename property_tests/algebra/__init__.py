"""Axes, notation, evaluation, and one file for each operation on layouts."""
