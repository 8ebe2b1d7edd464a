"""Rows of a table changed by what is in them: merges, updates and deletes by condition."""
