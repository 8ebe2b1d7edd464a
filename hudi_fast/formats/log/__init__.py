"""Log files: blocks, deletes, record positions, CDC records."""
