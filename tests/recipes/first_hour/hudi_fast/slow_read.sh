python slow_read.py
