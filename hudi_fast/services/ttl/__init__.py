"""Partition TTL: deletes partitions that have expired."""
