"""HFiles: reading and writing."""
