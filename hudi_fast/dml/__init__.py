"""DML: merges, updates and deletes by condition."""
