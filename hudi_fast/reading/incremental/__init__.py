"""What changed between two moments: rows of an incremental query, and changes with both images."""
