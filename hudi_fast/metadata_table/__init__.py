"""The table's own metadata table: its records, opened, read and looked up."""
