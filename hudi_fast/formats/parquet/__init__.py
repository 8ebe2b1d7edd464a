"""Parquet base files: reading, writing, byte-wise copies, statistics."""
