"""Catalogs: a Hive metastore or AWS Glue, and what they hold of a table."""
