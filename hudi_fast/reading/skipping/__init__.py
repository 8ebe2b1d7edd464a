"""Leaving out files that cannot hold what a filter asks for."""
