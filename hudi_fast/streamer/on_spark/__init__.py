"""Spark as the engine of a streamer: sources whose rows are DataFrames, and transformers of DataFrames."""
