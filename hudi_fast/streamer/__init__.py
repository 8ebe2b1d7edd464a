"""Feeds a table from a source for as long as it is wanted: ``hf.Streamer`` and ``hudi-fast stream``."""
