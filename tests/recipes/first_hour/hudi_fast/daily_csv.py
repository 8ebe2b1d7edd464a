# Upsert the CSV file of a day. The first run creates the table.
import sys

import hudi_fast as hf

hf.write(hf.read_rows(sys.argv[1]), "fares", key="id", order_by="ts")

fares = hf.read("fares", columns=["fare"])["fare"].to_pylist()
print((len(fares), sum(fares)))
