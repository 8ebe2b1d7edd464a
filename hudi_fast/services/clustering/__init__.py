"""Clustering: rewrites file groups into new ones without changing rows."""
