"""Compaction and log compaction: planned, executed slice by slice, completed."""
