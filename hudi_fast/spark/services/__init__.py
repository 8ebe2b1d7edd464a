"""The work of table services as Spark's tasks."""
