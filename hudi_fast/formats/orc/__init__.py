"""ORC base files: reading and writing."""
