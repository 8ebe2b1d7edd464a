"""Measurements whose size is a parameter: tables with very many file groups, and the memory that planning needs."""
