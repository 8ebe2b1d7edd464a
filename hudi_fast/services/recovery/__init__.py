"""Commits taken back: rollback, savepoints, restore."""
