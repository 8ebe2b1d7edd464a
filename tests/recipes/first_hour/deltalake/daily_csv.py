# Upsert the CSV file of a day. The first run creates the table.
import sys

import pyarrow.csv
from deltalake import DeltaTable, write_deltalake

rows = pyarrow.csv.read_csv(sys.argv[1])
if DeltaTable.is_deltatable("fares"):
    merge = DeltaTable("fares").merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all("s.ts >= t.ts").when_not_matched_insert_all().execute()
else:
    write_deltalake("fares", rows)

fares = DeltaTable("fares").to_pyarrow_table(columns=["fare"])["fare"].to_pylist()
print((len(fares), sum(fares)))
