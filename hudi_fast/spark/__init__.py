"""The Spark engine: it moves the rows of a session to the core's functions."""
