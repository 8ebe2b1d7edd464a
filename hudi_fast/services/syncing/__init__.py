"""Syncing catalogs with the table, after a write and on request."""
