"""SQL without Spark."""
