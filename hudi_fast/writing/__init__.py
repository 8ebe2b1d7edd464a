"""Writes: from rows to files and a commit."""
