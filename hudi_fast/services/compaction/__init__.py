"""Planning and execution of compaction and log compaction."""
