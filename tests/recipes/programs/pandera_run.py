"""A program: write good and bad rows by the function of the page. Arguments: the folder of its file. Prints JSON."""

from __future__ import annotations

import json
import sys

sys.path.insert(0, sys.argv[1])

import pandas as pd
from checked_fares import write
from pandera.errors import SchemaErrors

good = pd.DataFrame({"id": [1, 2], "city": ["Oslo", "Rome"], "fare": [9.5, 3.0], "ts": [1, 1]})
bad = pd.DataFrame({"id": [2, 3], "city": ["Rome", "Atlantis"], "fare": [-1.0, 4.0], "ts": [2, 2]})
said = [write(good, "fares").inserts]
try:
    write(bad, "fares")
except SchemaErrors as error:
    said.append(sorted(error.failure_cases["column"]))
print(json.dumps(said))
