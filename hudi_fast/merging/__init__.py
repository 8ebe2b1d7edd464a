"""Merging rows with one key, and log files with base files."""
