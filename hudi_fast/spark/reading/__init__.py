"""File slices as Spark DataFrames."""
