"""The command line, `hudi-fast`."""
