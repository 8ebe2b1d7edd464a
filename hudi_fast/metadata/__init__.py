"""The table's own metadata table: opened, read, looked up, and kept up to date with every action on the table."""
