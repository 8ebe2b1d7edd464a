"""Compiled loops on Arrow buffers: arrays in, arrays out. Imports numpy and numba only."""
