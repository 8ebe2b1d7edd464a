"""Existing jobs, unchanged: what `format("hudi")` means to a session."""
