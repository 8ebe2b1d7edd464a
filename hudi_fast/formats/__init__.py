"""File formats as Arrow data: Avro, log files, HFiles, bloom filters, Parquet base files."""
