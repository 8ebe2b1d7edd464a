"""The metadata table: open, read, look up and update its records."""
