python daily_csv.py "incoming/$DAY.csv"
