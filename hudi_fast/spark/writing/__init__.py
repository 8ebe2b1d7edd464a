"""The physical plans of a write on Spark."""
