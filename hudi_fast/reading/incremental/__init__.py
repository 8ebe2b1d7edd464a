"""Incremental queries (new rows between two times) and change queries (rows before and after)."""
