"""Table locks, shared by writers on one machine, on several machines, and by the JVMs of Apache Hudi."""
