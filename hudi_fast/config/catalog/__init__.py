"""The options that hudi_fast knows, one module per group."""
