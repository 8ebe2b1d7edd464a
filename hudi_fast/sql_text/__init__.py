"""SQL text: conditions on rows, parsed with Spark's grammar."""
