"""Rollback, savepoints and restore."""
