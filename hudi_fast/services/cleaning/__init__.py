"""Files that no query within the retention window needs are deleted."""
