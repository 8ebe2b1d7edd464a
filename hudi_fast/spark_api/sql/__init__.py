"""SQL statements and tables by name, on Spark."""
