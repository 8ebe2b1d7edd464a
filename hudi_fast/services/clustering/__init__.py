"""Clustering: file groups rewritten into others, rows as they were."""
