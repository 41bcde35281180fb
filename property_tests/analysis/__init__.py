"""Tests of tilelayout.analysis: every answer against a calculation that looks at each byte."""
