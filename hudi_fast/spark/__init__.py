"""The Spark adapter: the only package that imports PySpark. It moves rows to the core's functions."""
