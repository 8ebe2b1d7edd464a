"""What a table holds and what happened to it, as Arrow tables and text."""
