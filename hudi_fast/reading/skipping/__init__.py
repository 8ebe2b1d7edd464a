"""Data skipping: exclude files that cannot hold a row that the filter accepts."""
