"""Catalogs, a Hive metastore or AWS Glue, and their entries for a table."""
