"""The connection to a Hive metastore, which locks and catalogs share."""
