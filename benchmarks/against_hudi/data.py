"""The data set: taxi trips of ten cities, generated from a seed and stored as Parquet.

12 columns: ``uuid`` (record key, 36 bytes), ``city`` (partition path), ``rider``, ``driver``, ``ts`` (ordering field,
int64 microseconds), ``seats`` (int32), ``distance`` (int64, metres), ``fare`` and four coordinates (float64).

The folder ``data-<rows>-<seed>`` has one folder of Parquet files for each input. Spark reads the files in parallel:

- ``base``: all rows, in one file for each of the 20 file groups (two per city). One bulk insert task therefore writes
  one file group.
- ``up1``, ``up10``, ``up100``: updates of 1 %, 10 % and 100 % of the rows; each is newer than the row that it replaces.
  ``up10`` also has new rows, 2.5 % of the table.
- ``absent``: as many rows as the table has, in the same cities, with keys that the table does not have.
- ``small`` and ``small_up``: a table of 1000 rows, and updates of 100 of them.

Usage: ``python data.py <scratch folder> [rows]``.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

__all__ = ["BASE_OF", "COLUMNS", "expected_rows", "make_data", "read_rows", "trips"]

SEED = 20260102
CITIES = 10
FILE_GROUPS = 20
SMALL_ROWS = 1000
SMALL_UPDATES = 100
ROWS_PER_FILE = 100_000
FIRST_TS = 1_767_225_600_000_000
COLUMNS = (
    "uuid",
    "city",
    "rider",
    "driver",
    "ts",
    "seats",
    "distance",
    "fare",
    "begin_lat",
    "begin_lon",
    "end_lat",
    "end_lon",
)
# Input of an upsert -> input of its starting table.
BASE_OF = {"up1": "base", "up10": "base", "up100": "base", "absent": "base", "small_up": "small"}


def make_data(scratch: str | Path, rows: int = 2_000_000, seed: int = SEED) -> Path:
    """The folder with the data set, created if it does not exist. ``rows`` must be a multiple of 400."""
    if rows % 400:
        raise ValueError(f"rows must be a multiple of 400, so that file groups have equal sizes; found {rows}")
    target = Path(scratch) / f"data-{rows}-{seed}"
    if target.exists():
        return target
    Path(scratch).mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=".data-", dir=scratch))
    try:
        _fill(building, rows, np.random.default_rng(seed))
        # A folder has its final name only once it is complete.
        building.rename(target)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return target


def read_rows(folder: Path, name: str) -> pa.Table:
    """All rows of one input, in the order of its files."""
    return pq.read_table(folder / name, columns=list(COLUMNS), partitioning=None)


def expected_rows(folder: Path, name: str) -> pa.Table:
    """The expected rows of a table after that input was written, sorted by key."""
    rows = read_rows(folder, "base" if name == "absent" else name)  # deletes of absent keys change nothing
    if name in BASE_OF and name != "absent":
        base = read_rows(folder, BASE_OF[name])
        untouched = base.filter(pc.invert(pc.is_in(base["uuid"], value_set=rows["uuid"])))
        rows = pa.concat_tables([untouched, rows])
    return rows.sort_by("uuid").combine_chunks()


def _fill(folder: Path, rows: int, rng: np.random.Generator) -> None:
    per_group = rows // FILE_GROUPS
    # Rows of one file group are consecutive: city = group // 2.
    cities = np.arange(rows) // (2 * per_group)
    base = trips(rng, cities, np.full(rows, FIRST_TS))
    _write(folder / "base", base, FILE_GROUPS)
    for name, updates, inserts in (("up1", rows // 100, 0), ("up10", rows // 10, rows // 40), ("up100", rows, 0)):
        batch = _updates(rng, base, updates)
        if inserts:
            new = trips(rng, rng.integers(0, CITIES, inserts), np.full(inserts, FIRST_TS))
            both = pa.concat_tables([batch, new])
            batch = both.take(rng.permutation(both.num_rows))
        _write(folder / name, batch, max(2, batch.num_rows // ROWS_PER_FILE))
    small = trips(rng, np.arange(SMALL_ROWS) % CITIES, np.full(SMALL_ROWS, FIRST_TS))
    _write(folder / "small", small, 1)
    _write(folder / "small_up", _updates(rng, small, SMALL_UPDATES), 1)
    absent = trips(rng, cities, np.full(rows, FIRST_TS))
    _write(folder / "absent", absent.take(rng.permutation(rows)), FILE_GROUPS)


def _updates(rng: np.random.Generator, base: pa.Table, count: int) -> pa.Table:
    """New versions of ``count`` different rows in random order: same key and city, later ``ts``, new values."""
    chosen = base.select(["uuid", "city", "ts"]).take(rng.permutation(base.num_rows)[:count])
    later = chosen["ts"].to_numpy() + 1_000_000_000
    fresh = trips(rng, np.zeros(count, np.int64), later)
    return fresh.set_column(0, "uuid", chosen["uuid"]).set_column(1, "city", chosen["city"])


def trips(rng: np.random.Generator, cities: np.ndarray, ts: np.ndarray) -> pa.Table:
    """New rows, as many as ``cities`` has numbers; ``ts`` is their ordering field, to which less than 1 s is added."""
    count = len(cities)
    columns = {
        "uuid": _uuids(rng, count),
        "city": _numbered("city", cities),
        "rider": _numbered("rider", rng.integers(0, 100_000, count)),
        "driver": _numbered("driver", rng.integers(0, 10_000, count)),
        "ts": pa.array(ts + rng.integers(0, 1_000_000, count)),
        "seats": pa.array(rng.integers(1, 7, count, dtype=np.int32)),
        "distance": pa.array(rng.integers(100, 60_000, count)),
        "fare": pa.array(np.round(rng.uniform(3, 150, count), 2)),
        "begin_lat": pa.array(rng.uniform(48.1, 48.3, count)),
        "begin_lon": pa.array(rng.uniform(16.2, 16.5, count)),
        "end_lat": pa.array(rng.uniform(48.1, 48.3, count)),
        "end_lon": pa.array(rng.uniform(16.2, 16.5, count)),
    }
    return pa.table(columns)


def _numbered(name: str, numbers: np.ndarray) -> pa.ChunkedArray | pa.Array:
    return pc.binary_join_element_wise(name, pc.cast(pa.array(numbers), pa.string()), "-")


def _uuids(rng: np.random.Generator, count: int) -> pa.Array:
    """Random UUIDs as text: 8-4-4-4-12 hexadecimal digits."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    raw = rng.integers(0, 256, (count, 16), dtype=np.uint8)
    text = np.full((count, 36), ord("-"), np.uint8)
    places = [place for place in range(36) if place not in (8, 13, 18, 23)]
    text[:, places[0::2]] = digits[raw >> 4]
    text[:, places[1::2]] = digits[raw & 15]
    offsets = np.arange(count + 1, dtype=np.int32) * 36
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))


def _write(folder: Path, rows: pa.Table, files: int) -> None:
    folder.mkdir()
    bounds = np.linspace(0, rows.num_rows, files + 1).astype(int)
    for number, (first, end) in enumerate(pairwise(bounds)):
        pq.write_table(rows.slice(first, end - first), folder / f"part-{number:03}.parquet", compression="snappy")


if __name__ == "__main__":
    print(make_data(sys.argv[1], *map(int, sys.argv[2:3])))
