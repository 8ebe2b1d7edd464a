"""Contents and history of a table as Arrow tables and text."""
