"""Apache Hudi's procedures, on Spark or in this process."""
