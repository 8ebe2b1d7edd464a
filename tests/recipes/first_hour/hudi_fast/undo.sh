python undo.py
