"""Tagging: finding the file groups of record keys."""
