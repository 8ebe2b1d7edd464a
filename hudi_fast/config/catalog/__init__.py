"""Definitions of all options, one module per group."""
