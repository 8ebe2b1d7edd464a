"""Queries: snapshots, time travel, incremental and change queries, and tables about a table."""
