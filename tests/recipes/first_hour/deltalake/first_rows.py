# Create a table of three rows, then upsert two: one is newer than a stored row, one is new.
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

first = [{"id": 1, "fare": 9.5, "ts": 1}, {"id": 2, "fare": 3.0, "ts": 1}, {"id": 3, "fare": 7.25, "ts": 1}]
write_deltalake("trips", pa.Table.from_pylist(first))
more = pa.Table.from_pylist([{"id": 3, "fare": 8.0, "ts": 2}, {"id": 4, "fare": 2.5, "ts": 2}])
merge = DeltaTable("trips").merge(more, "t.id = s.id", source_alias="s", target_alias="t")
merge.when_matched_update_all("s.ts >= t.ts").when_not_matched_insert_all().execute()

# Read two columns of the rows that match a filter.
rows = DeltaTable("trips").to_pyarrow_table(columns=["id", "fare"], filters=[("fare", ">", 5)])
print([(row["id"], row["fare"]) for row in rows.sort_by("id").to_pylist()])
