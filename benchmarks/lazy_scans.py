"""Queries that polars and duckdb push into a lazy scan: their times and memory, beside plain Parquet files.

Run as a program (``python -m benchmarks.lazy_scans 2000000``), it prints processor times of a COPY_ON_WRITE table, of a
MERGE_ON_READ table with 10 % of its rows in log files, and of the same rows in Parquet files without Hudi.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hudi_fast.kernels import warm_up

import hudi_fast as hf

ROWS = 500_000
CITIES = 20
KINDS = {"COW": "copy_on_write", "MOR": "merge_on_read"}
PLAIN = "Parquet"


def _trips(numbers: np.ndarray, ts: int) -> pa.Table:
    random = np.random.default_rng(ts)
    count = len(numbers)
    texts = pc.cast(pa.array(numbers), pa.string())
    columns: dict[str, Any] = {
        "uuid": pc.binary_join_element_wise("key-0000-0000-0000", texts, "-"),
        "city": pc.binary_join_element_wise("city", pc.cast(pa.array(numbers % CITIES), pa.string()), "-"),
        "ts": np.full(count, ts),
        "day": pa.array((numbers // CITIES % 2000).astype(np.int32)).cast(pa.date32()),
        "status": pc.take(pa.array(["paid", "open", "void"]), pa.array(random.integers(0, 3, count))),
        "seats": random.integers(1, 7, count),
    }
    return pa.table(columns | {f"value_{place}": random.random(count) for place in range(6)})


def make(kind: str, rows: int) -> Path:
    """Rows of which every tenth was updated."""
    folder = Path(tempfile.mkdtemp(prefix="hudi_fast-asv-"))
    path = folder / "t"
    first, newer = _trips(np.arange(rows), 0), _trips(np.arange(0, rows, 10), 1)
    words = {"key": "uuid", "partition_by": "city", "order_by": "ts", "table_type": KINDS.get(kind, "copy_on_write")}
    hf.write(first, path, {"hoodie.compact.inline": "false"}, operation="bulk_insert", **words)
    hf.write(newer, path, {"hoodie.compact.inline": "false"})
    if kind == PLAIN:
        (folder / "plain").mkdir()
        table = hf.HudiTable.open(path)
        for place, split in enumerate(table.scan(first.schema.names).splits()):
            pq.write_table(split.read().read_all(), folder / "plain" / f"{place}.parquet")
    return folder


QUERIES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "sums by group": (
        lambda pl, trips: (
            trips.filter(pl.col("day") <= pl.date(1975, 1, 1))
            .group_by("status", "seats")
            .agg(pl.col("value_0").sum(), (pl.col("value_1") * (1 - pl.col("value_2"))).sum().alias("net"), pl.len())
        ),
        "select status, seats, sum(value_0), sum(value_1 * (1 - value_2)), count(*) from {} "
        "where day <= date '1975-01-01' group by status, seats",
    ),
    "one sum of few rows": (
        lambda pl, trips: trips.filter(
            pl.col("day").is_between(pl.date(1972, 1, 1), pl.date(1972, 12, 31)) & (pl.col("seats") < 3)
        ).select((pl.col("value_0") * pl.col("value_3")).sum()),
        "select sum(value_0 * value_3) from {} where day between date '1972-01-01' and date '1972-12-31' and seats < 3",
    ),
    "one partition": (
        lambda pl, trips: trips.filter((pl.col("city") == "city-3") & (pl.col("value_0") > 0.5)).select(
            pl.col("value_1").mean()
        ),
        "select avg(value_1) from {} where city = 'city-3' and value_0 > 0.5",
    ),
    "join with itself": (
        lambda pl, trips: (
            trips.filter(pl.col("value_0") > 0.9)
            .select("uuid", "seats")
            .join(trips.filter(pl.col("value_1") > 0.9).select("uuid", "status"), on="uuid")
            .group_by("status")
            .agg(pl.col("seats").sum())
        ),
        "select b.status, sum(a.seats) from {0} a join {0} b using (uuid) "
        "where a.value_0 > 0.9 and b.value_1 > 0.9 group by b.status",
    ),
    "largest ten": (
        lambda pl, trips: trips.sort("value_5", descending=True).head(10).select("uuid", "value_5"),
        "select uuid, value_5 from {} order by value_5 desc limit 10",
    ),
}


def run(engine: str, query: str, folder: Path, kind: str) -> int:
    """Run a query; the number of rows of its answer."""
    of_polars, text = QUERIES[query]
    plain = str(folder / "plain" / "*.parquet")
    table = None if kind == PLAIN else hf.HudiTable.open(folder / "t")
    if engine == "polars":
        import polars as pl

        lazy = pl.scan_parquet(plain) if table is None else table.to_polars(lazy=True)
        return of_polars(pl, lazy).collect(engine="streaming").height
    import duckdb

    with duckdb.connect() as connection:
        if table is not None:
            connection.register("trips", table.scan())
        source = f"read_parquet('{plain}')" if table is None else "trips"
        return len(connection.sql(text.format(source)).fetchall())


class LazyScans:
    """Queries of one engine on one kind of table."""

    params = (["polars", "duckdb"], [*KINDS, PLAIN], list(QUERIES))
    param_names = ("engine", "table", "query")
    timeout = 300

    def setup(self, engine: str, kind: str, query: str) -> None:
        warm_up()
        self.folder = make(kind, ROWS)

    def teardown(self, engine: str, kind: str, query: str) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def time_query(self, engine: str, kind: str, query: str) -> None:
        assert run(engine, query, self.folder, kind)

    def peakmem_query(self, engine: str, kind: str, query: str) -> None:
        run(engine, query, self.folder, kind)


def _processor_time(engine: str, query: str, folder: Path, kind: str) -> float:
    times = []
    for _ in range(4):
        begin = time.process_time()
        run(engine, query, folder, kind)
        times.append(time.process_time() - begin)
    return statistics.median(times[1:])


def main() -> None:
    """Print the processor times, and those of tables in relation to plain Parquet."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    folders = {kind: make(kind, rows) for kind in (*KINDS, PLAIN)}
    try:
        for engine in ("polars", "duckdb"):
            for query in QUERIES:
                times = {kind: _processor_time(engine, query, folder, kind) for kind, folder in folders.items()}
                ratios = ", ".join(f"{kind} {times[kind]:.2f} s = {times[kind] / times[PLAIN]:.1f} x" for kind in KINDS)
                print(f"{engine:7} {query:20} {PLAIN} {times[PLAIN]:.2f} s, {ratios}", flush=True)
    finally:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
