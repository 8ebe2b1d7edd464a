"""Compaction and log compaction: planned, carried out slice by slice, completed."""
