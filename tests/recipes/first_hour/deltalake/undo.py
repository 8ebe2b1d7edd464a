# The newest write was wrong. Look at the writes, then at some rows that the newest one changed.
from deltalake import DeltaTable

table = DeltaTable("fares")
for entry in table.history():
    print(entry["version"], entry["timestamp"], entry["operation"])
version = table.version()
now = DeltaTable("fares", version=version).to_pyarrow_table(columns=["id", "fare"])
before = DeltaTable("fares", version=version - 1).to_pyarrow_table(columns=["id", "fare"])
joined = now.join(before, "id", right_suffix="_before")
print([row for row in joined.to_pylist() if row["fare"] != row["fare_before"]][:5])

# Undo it.
table.restore(version - 1)

fares = DeltaTable("fares").to_pyarrow_table(columns=["fare"])["fare"].to_pylist()
print((len(fares), sum(fares)))
