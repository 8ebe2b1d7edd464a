"""hudi_fast: reads and writes Apache Hudi tables natively."""
