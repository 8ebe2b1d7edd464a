"""The Python data source ``hudi_fast`` of PySpark 4 and later."""
