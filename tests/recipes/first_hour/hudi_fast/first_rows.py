# Create a table of three rows, then upsert two: one is newer than a stored row, one is new.
import hudi_fast as hf

first = [{"id": 1, "fare": 9.5, "ts": 1}, {"id": 2, "fare": 3.0, "ts": 1}, {"id": 3, "fare": 7.25, "ts": 1}]
hf.write(first, "trips", key="id", order_by="ts")
hf.write([{"id": 3, "fare": 8.0, "ts": 2}, {"id": 4, "fare": 2.5, "ts": 2}], "trips")

# Read two columns of the rows that match a filter.
rows = hf.read("trips", columns=["id", "fare"], filter="fare > 5").sort_by("id").to_pylist()
print([(row["id"], row["fare"]) for row in rows])
