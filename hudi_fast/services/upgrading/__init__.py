"""Upgrade and downgrade of the table version, one step at a time."""
