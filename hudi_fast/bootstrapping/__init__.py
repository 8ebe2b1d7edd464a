"""Bootstrap: turns an existing folder of Parquet files into a table, with or without copying its rows."""
