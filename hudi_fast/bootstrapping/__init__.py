"""An existing folder of Parquet files becomes a table, with or without copying its rows."""
