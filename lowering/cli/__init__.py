"""Commands of the command line `tilelayout` that need lowering: ``mma`` and ``lower``.

They join it through the entry-point group ``tilelayout.commands``, since tilelayout may not import lowering.  The
module of a command is imported for its help, so what is dear is imported by the functions that need it.
"""
