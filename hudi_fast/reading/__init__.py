"""Queries: snapshots, time travel, changes, metadata of tables."""
