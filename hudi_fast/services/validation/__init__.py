"""The metadata table compared with the files and rows that it speaks of."""
