"""The archived timeline of both layouts: reading and writing."""
