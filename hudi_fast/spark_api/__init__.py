"""Additions to a Spark session: the drop-in, SQL, the data source, streams."""
