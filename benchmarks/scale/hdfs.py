"""Writes and reads on HDFS, against the same on local disk.

::

    rows ─► local folder, HDFS: in turn, in this process ─► bulk_insert, upsert of a tenth, small upsert, read ─► times

HDFS is Hadoop's ``MiniDFSCluster`` with two DataNodes, on this machine: its processes share the cores with the writer,
and each block is stored twice. The rows of both tables are compared before any time is printed.

Usage::

    python -m benchmarks.scale.hdfs [--rows 2000000] [--runs 5]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

import pyarrow as pa

import hudi_fast as hf
from benchmarks.against_hudi.data import make_data, read_rows
from tests.servers.hdfs import start_hdfs

_CACHE = Path(__file__).resolve().parents[2] / "artifacts" / "test_servers"
_OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
}
_PLACES = ("local disk", "HDFS")
_WRITES = (("bulk_insert", "base", "bulk_insert"), ("upsert of 10 %", "up10", "upsert"))


def main() -> None:
    """Run both places in turn and print the times of each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hdfs-") as name, start_hdfs(_CACHE, Path(name)) as cluster:
        folder = Path(name)
        data = make_data(folder, given.rows)
        rows = {each: read_rows(data, each) for each in ("base", "up10", "small_up")}
        roots = dict(zip(_PLACES, (str(folder / "local"), f"{cluster.uri}/tables"), strict=True))
        found: dict[tuple[str, str], list[float]] = defaultdict(list)
        for run in range(given.runs + 1):  # the first, which also starts kernels and connections, does not count
            tables = []
            for place, root in roots.items():
                steps, table = _life(f"{root}/{run}", rows)
                tables.append(table)
                for step, seconds in steps.items():
                    found[step, place] += [seconds] if run else []
                hf.HudiTable.open(f"{root}/{run}").truncate()
            if not tables[0].equals(tables[1]):
                raise SystemExit("The tables differ.")
    for step in dict.fromkeys(step for step, _ in found):
        medians = {place: median(found[step, place]) for place in _PLACES}
        ranges = {place: f"{min(found[step, place]):.2f} to {max(found[step, place]):.2f}" for place in _PLACES}
        texts = [f"{place} {medians[place]:6.2f} s ({ranges[place]})" for place in _PLACES]
        print(f"{step:15} {', '.join(texts)}, ratio {medians['HDFS'] / medians['local disk']:.2f}")


def _life(path: str, rows: dict[str, pa.Table]) -> tuple[dict[str, float], pa.Table]:
    """Seconds of each step, and the rows of the table afterwards, sorted by key."""
    seconds = {}
    for step, name, operation in (*_WRITES, ("100 rows", "small_up", "upsert")):
        begin = time.perf_counter()
        hf.write(rows[name], path, {**_OPTIONS, "hoodie.datasource.write.operation": operation})
        seconds[step] = time.perf_counter() - begin
    begin = time.perf_counter()
    table = hf.HudiTable.open(path).to_arrow(columns=rows["base"].column_names)
    seconds["snapshot"] = time.perf_counter() - begin
    return seconds, table.sort_by("uuid").combine_chunks()


if __name__ == "__main__":
    main()
