"""Comparing the metadata table with the files and rows of the table."""
