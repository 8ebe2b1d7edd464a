"""File groups and file slices of a table state."""
