"""Who may change the table: locks that writers of one machine, of many, and of Apache Hudi's JVMs share."""
