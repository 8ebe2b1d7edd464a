"""Instants of a table: states, times, plans, commit metadata, archive."""
