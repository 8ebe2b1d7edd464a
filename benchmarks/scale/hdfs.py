"""Writes and reads on HDFS, against the same on local disk.

::

    rows ─► local folder, HDFS: in turn, in this process ─► bulk_insert, upserts, read ─► times
    bytes of the newest base files ─► HDFS, by the bare client ─► time

HDFS is Hadoop's ``MiniDFSCluster`` with two DataNodes, on this machine: its process shares the cores with the writer.
The rows of both tables are compared before any time is printed. The bare client (hdfs-native) writes the bytes of a
table's base files to as many files, on as many threads as a write has: what HDFS itself takes on this machine.

Usage::

    python -m benchmarks.scale.hdfs [--rows 2000000] [--runs 5] [--early-closes]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import hdfs_native
import pyarrow as pa

import hudi_fast as hf
from benchmarks.against_hudi.data import make_data, read_rows
from tests.servers.hdfs import EARLY_CLOSES, start_hdfs
from tests.support.jvm import FETCHED

_OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
}
_THREADS = 2
_PLACES = ("local disk", "HDFS")
_WRITES = (
    ("bulk_insert", "base", "bulk_insert"),
    ("upsert of 10 %", "up10", "upsert"),
    ("upsert of 100 %", "up100", "upsert"),
    ("100 rows", "small_up", "upsert"),
)


def main() -> None:
    """Run both places in turn and print the times of each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--early-closes", action="store_true", help="let the NameNode close files early")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="hdfs-") as name,
        start_hdfs(FETCHED, Path(name), EARLY_CLOSES if given.early_closes else {}, quick_start=False) as cluster,
    ):
        folder = Path(name)
        data = make_data(folder, given.rows)
        rows = {each: read_rows(data, each) for each in ("base", "up10", "up100", "small_up")}
        roots = dict(zip(_PLACES, (str(folder / "local"), f"{cluster.uri}/tables"), strict=True))
        found: dict[tuple[str, str], list[float]] = defaultdict(list)
        for run in range(given.runs + 1):  # the first, which also starts kernels and connections, does not count
            tables = []
            for place, root in roots.items():
                steps, table = _life(f"{root}/{run}", rows)
                tables.append(table)
                for step, seconds in steps.items():
                    found[step, place] += [seconds] if run else []
            if not tables[0].equals(tables[1]):
                raise SystemExit("The tables differ.")
            for step, seconds in _bare(cluster.uri, folder / "local" / str(run), run).items():
                found[step, "HDFS"] += [seconds] if run else []
            for root in roots.values():
                hf.HudiTable.open(f"{root}/{run}").truncate()
    for step in dict.fromkeys(step for step, _ in found):
        medians = {place: median(found[step, place]) for place in _PLACES if (step, place) in found}
        ranges = {place: f"{min(found[step, place]):.2f} to {max(found[step, place]):.2f}" for place in medians}
        texts = [f"{place} {medians[place]:6.2f} s ({ranges[place]})" for place in medians]
        ratio = f", ratio {medians['HDFS'] / medians['local disk']:.2f}" if len(medians) == 2 else ""
        print(f"{step:28} {', '.join(texts)}{ratio}")


def _bare(uri: str, table: Path, run: int) -> dict[str, float]:
    """Seconds in which the client alone writes the table's newest base files, and as many files of 1 kB."""
    newest = sorted(table.rglob("*.parquet"), key=lambda file: file.stat().st_mtime)[-20:]
    contents = [file.read_bytes() for file in newest if "/.hoodie/" not in str(file)]
    client = hdfs_native.Client(uri)
    seconds = {}
    for step, each in (("bare client, base files", contents), ("bare client, 1 kB", [one[:1024] for one in contents])):

        def put(number: int, content: bytes, step: str = step) -> None:
            with client.create(f"/bare/{run}/{step}/{number}", hdfs_native.WriteOptions(create_parent=True)) as sink:
                sink.write(content)

        begin = time.perf_counter()
        with ThreadPoolExecutor(_THREADS) as threads:
            for _ in threads.map(put, range(len(each)), each):
                pass
        seconds[f"{step}: {sum(map(len, each)) >> 20} MiB"] = time.perf_counter() - begin
    client.delete("/bare", True)
    return seconds


def _life(path: str, rows: dict[str, pa.Table]) -> tuple[dict[str, float], pa.Table]:
    """Seconds of each step, and the rows of the table afterwards, sorted by key."""
    seconds = {}
    for step, name, operation in _WRITES:
        begin = time.perf_counter()
        hf.write(rows[name], path, {**_OPTIONS, "hoodie.datasource.write.operation": operation})
        seconds[step] = time.perf_counter() - begin
    begin = time.perf_counter()
    table = hf.HudiTable.open(path).to_arrow(columns=rows["base"].column_names)
    seconds["snapshot"] = time.perf_counter() - begin
    return seconds, table.sort_by("uuid").combine_chunks()


if __name__ == "__main__":
    main()
