"""Record keys and partition paths: key generators, the text of values, timestamp-based paths and their time zones."""
