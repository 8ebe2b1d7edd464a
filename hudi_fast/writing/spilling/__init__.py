"""Local writes of streams that are larger than memory."""
