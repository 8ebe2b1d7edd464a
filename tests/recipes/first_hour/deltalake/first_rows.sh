python first_rows.py
