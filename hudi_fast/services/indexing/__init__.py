"""Indexes of the metadata table: planned, built beside the writers, dropped, listed."""
