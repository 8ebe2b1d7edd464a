"""Write, change, read and compact a small table in the current folder with the installed package."""

from __future__ import annotations

import pyarrow as pa

import hudi_fast as hf

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
}


def main() -> None:
    """Raise if an answer is wrong."""
    hf.write(pa.table({"id": [1, 2, 3], "fare": [9.5, 3.0, 7.25]}), "trips", OPTIONS)
    result = hf.write(pa.table({"id": [3], "fare": [8.0]}), "trips", OPTIONS)
    table = hf.HudiTable.open("trips")
    fares = table.to_arrow(columns=["id", "fare"]).sort_by("id")["fare"].to_pylist()
    compacted = table.services.compact().log_files
    if (result.updates, fares, compacted) != (1, [9.5, 3.0, 8.0], 1):
        raise SystemExit(f"Wrong answers: {result.updates} updates, fares {fares}, {compacted} log files compacted")
    print(f"hudi_fast {hf.__version__} works")


if __name__ == "__main__":
    main()
