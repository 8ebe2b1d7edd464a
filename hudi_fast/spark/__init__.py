"""The Spark engine: the only place that imports PySpark. It moves rows to the core's functions and holds none."""
