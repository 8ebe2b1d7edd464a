"""Avro schemas, container files and record batches."""
