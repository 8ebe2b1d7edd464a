"""Several writers at once: which of them may land."""
