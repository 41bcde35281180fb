"""The operations on layouts: one file per idea, pure functions on shards, replicas and offsets.

They take validated values and give back ``(shard, replica, offset)`` (or a part of it); `layout`
offers them as methods.  Each either satisfies the post-condition in its docstring at every coordinate
or raises `LayoutError`.  Notation, pictures and other systems may not enter.
"""
