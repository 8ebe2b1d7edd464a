"""Incoming rows that are read from Parquet files by Python, without the JVM."""
