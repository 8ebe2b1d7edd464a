"""Inputs and starting tables of :mod:`benchmarks.scale.growth`, and what their rows must add up to.

::

    Shape ─► base, up-000, up-001, ...: folders of Parquet files; keys: 100 of them ─► Inputs, with a digest of the
             │                                                                        rows after each update
             └─► start_table: insert of base ─► upsert of the first updates ─► older instants on the timeline

The rows are trips as of :mod:`benchmarks.against_hudi.data`, with more or fewer columns and keys of other lengths. An
update changes rows that no other update changes, and gives them a later ordering value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.against_hudi.data import COLUMNS, FIRST_TS, trips

__all__ = ["DIGEST_COLUMNS", "Digest", "Inputs", "Shape", "digest", "make_inputs", "start_table"]

FILES = 20
LOOKED_UP = 100
UUID_LENGTH = 36
FIRST_COLUMNS = ("uuid", "city", "ts")
VALUE_COLUMNS = tuple(name for name in COLUMNS if name not in FIRST_COLUMNS)
DIGEST_COLUMNS = ("uuid", "ts", "distance")
_LATER = 1_000_000_000
_ODD = np.uint64(0x9E3779B97F4A7C15)

Digest = tuple[int, int, int]
"""Number of rows, and sums modulo 2**64 over them: hash of the key times ``ts``, and times ``distance``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a table is like.

    Attributes:
        rows: rows, a multiple of ``groups``.
        columns: three for key, partition path and ordering value, then values of the types of a trip in turn.
        key_length: bytes of a key.
        groups: file groups, a multiple of ``partitions``; all have equally many rows.
        partitions: partitions.
        updates: number of updates, each of ``update_rows`` rows.
        update_rows: rows of an update.
        logs: how many of the updates a MERGE_ON_READ table has in log files.
        instants: completed commits on the active timeline of a COPY_ON_WRITE table.
    """

    rows: int
    columns: int = 12
    key_length: int = UUID_LENGTH
    groups: int = 20
    partitions: int = 10
    updates: int = 1
    update_rows: int
    logs: int = 1
    instants: int = 1


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a shape.

    Attributes:
        folder: the folder of all inputs.
        digests: of the table after the first updates; ``digests[0]`` is that of ``base``.
        found: key and ordering value of the rows that a lookup finds in ``base``, sorted.
    """

    folder: Path
    digests: list[Digest]
    found: list[tuple[str, int]]

    @property
    def base(self) -> Path:
        """All rows of the table."""
        return self.folder / "base"

    @property
    def keys(self) -> Path:
        """The keys to look up, one a line."""
        return self.folder / "keys"

    def update(self, number: int) -> Path:
        """The rows of an update."""
        return self.folder / f"up-{number:03}"


def make_inputs(folder: Path, shape: Shape, seed: int = 1) -> Inputs:
    """Write the inputs of a shape into a new folder."""
    rng = np.random.default_rng(seed)
    for name in ("base", *(f"up-{number:03}" for number in range(shape.updates))):
        (folder / name).mkdir(parents=True)
    # The update that changes a row, or one beyond the last.
    changed_by = np.full(shape.rows, shape.updates, np.int16)
    changed_by[: shape.updates * shape.update_rows] = np.repeat(np.arange(shape.updates), shape.update_rows)
    rng.shuffle(changed_by)
    before: list[list[pa.Table]] = [[] for _ in range(shape.updates)]
    sums = [(0, 0, 0)]
    wanted = []
    files = min(FILES, -(-shape.rows // 1000))
    bounds = np.linspace(0, shape.rows, files + 1).astype(int)
    for number in range(files):
        here = np.arange(bounds[number], bounds[number + 1])
        rows = _rows(rng, shape, here)
        pq.write_table(rows, folder / "base" / f"part-{number:03}.parquet", compression="snappy")
        sums.append(digest([rows]))
        wanted.append(rows.slice(len(here) // 2, -(-LOOKED_UP // files)).select(["uuid", "ts"]))
        old = rows.select([name for name in ("uuid", "city", "ts", "distance") if name in rows.column_names])
        for update in range(shape.updates):
            before[update].append(old.filter(pa.array(changed_by[here] == update)))
    digests = [_sum(sums)]
    for number, parts in enumerate(before):
        old = pa.concat_tables(parts)
        new = _updated(rng, shape, old)
        _write_update(folder / f"up-{number:03}", new)
        digests.append(_sum([digests[-1], digest([new]), _negative(digest([old]))]))
    chosen = pa.concat_tables(wanted).slice(0, LOOKED_UP)
    (folder / "keys").write_text("\n".join(chosen["uuid"].to_pylist()))
    return Inputs(folder, digests, sorted(zip(chosen["uuid"].to_pylist(), chosen["ts"].to_pylist(), strict=True)))


def start_table(path: Path, inputs: Inputs, shape: Shape, options: dict[str, str], updates: int) -> None:
    """Make a table with hudi_fast: an insert of ``base``, upserts of the first updates, and older instants.

    Args:
        path: the table.
        inputs: of the shape.
        shape: the table's shape.
        options: of an insert into the table.
        updates: how many updates it has.
    """
    import hudi_fast as hf

    hf.write(_read(inputs.base), path, options)
    for number in range(updates):
        upsert = {**options, "hoodie.datasource.write.operation": "upsert"}
        hf.write(_read(inputs.update(number)), path, upsert)
    if shape.instants > 1:
        _add_instants(path, shape.instants - 1)


def digest(tables: Iterable[pa.Table | pa.RecordBatch]) -> Digest:
    """The digest of rows whose keys have one length, from the columns ``uuid``, ``ts`` and, if there, ``distance``."""
    sums = [(0, 0, 0)]
    for table in tables:
        for batch in table.to_batches() if isinstance(table, pa.Table) else [table]:
            if batch.num_rows:
                hashes = _hashes(batch.column("uuid").cast(pa.string()))
                values = [batch.column(name) for name in ("ts", "distance") if name in batch.schema.names]
                found = [int((hashes * _plain(one)).sum(dtype=np.uint64)) for one in values]
                sums.append((batch.num_rows, found[0], found[1] if len(found) > 1 else 0))
    return _sum(sums)


def _plain(column: pa.Array) -> np.ndarray:
    return column.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)


def _hashes(keys: pa.StringArray) -> np.ndarray:
    """A number for each key, uint64[n]; all keys have the same length."""
    offsets = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
    width = int(offsets[1] - offsets[0])
    if int(offsets[-1] - offsets[0]) != width * len(keys):
        raise SystemExit("found keys of different lengths")
    padded = np.zeros((len(keys), -(-width // 8) * 8), np.uint8)
    padded[:, :width] = np.frombuffer(keys.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].reshape(-1, width)
    words = padded.view(np.uint64)
    found = np.zeros(len(keys), np.uint64)
    for place in range(words.shape[1]):
        found = (found ^ words[:, place]) * _ODD
        found ^= found >> np.uint64(29)
    return found


def _sum(digests: Iterable[Digest]) -> Digest:
    count, first, second = (sum(column) for column in zip(*digests, strict=True))
    return count, first % 2**64, second % 2**64


def _negative(one: Digest) -> Digest:
    return -one[0], -one[1], -one[2]


def _rows(rng: np.random.Generator, shape: Shape, numbers: np.ndarray) -> pa.Table:
    """The rows with these numbers; those of a partition are consecutive."""
    cities = numbers // -(-shape.rows // shape.partitions)
    rows = trips(rng, cities, np.full(len(numbers), FIRST_TS))
    if shape.key_length != UUID_LENGTH:
        rows = rows.set_column(0, "uuid", _keys(rng, numbers, shape.key_length))
    return _with_columns(rng, rows, shape.columns)


def _with_columns(rng: np.random.Generator, rows: pa.Table, columns: int) -> pa.Table:
    """The first columns of trips, or those and the value columns of more trips."""
    names = [*FIRST_COLUMNS, *VALUE_COLUMNS]
    found = rows.select(names[:columns])
    while found.num_columns < columns:
        turn = (found.num_columns - len(FIRST_COLUMNS)) // len(VALUE_COLUMNS)
        more = trips(rng, np.zeros(rows.num_rows, np.int64), np.zeros(rows.num_rows, np.int64))
        for name in VALUE_COLUMNS[: columns - found.num_columns]:
            found = found.append_column(f"{name}_{turn}", more[name])
    return found


def _keys(rng: np.random.Generator, numbers: np.ndarray, length: int) -> pa.Array:
    """Hexadecimal texts of that length, at least 8; the first 8 digits differ for different numbers below 2**32."""
    scattered = (numbers.astype(np.uint64) * _ODD) & np.uint64(2**32 - 1)
    text = rng.integers(0, 16, (len(numbers), length), dtype=np.uint8)
    for place in range(8):
        text[:, place] = (scattered >> np.uint64(4 * place)) & np.uint64(15)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * length
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(digits[text]))


def _updated(rng: np.random.Generator, shape: Shape, old: pa.Table) -> pa.Table:
    """New versions of rows, in random order."""
    old = old.take(rng.permutation(old.num_rows))
    new = trips(rng, np.zeros(old.num_rows, np.int64), old["ts"].to_numpy() + _LATER)
    new = new.set_column(0, "uuid", old["uuid"]).set_column(1, "city", old["city"])
    return _with_columns(rng, new, shape.columns)


def _write_update(folder: Path, rows: pa.Table) -> None:
    half = -(-rows.num_rows // 2)
    for number in range(2):
        part = rows.slice(number * half, half)
        pq.write_table(part, folder / f"part-{number:03}.parquet", compression="snappy")


def _read(folder: Path) -> pa.Table:
    return pq.read_table(folder, partitioning=None)


def _add_instants(path: Path, count: int) -> None:
    """Older completed commits with the metadata of the first one, as of a table whose archiving is turned off."""
    from hudi_fast.storage.base import Storage
    from hudi_fast.timeline.instants import Instant, State
    from hudi_fast.timeline.transition import complete, create_requested, to_inflight
    from hudi_fast.view.table_state import load_state

    state = load_state(Storage(path))
    first = state.timeline.writes()[0]
    body = state.storage.read_bytes(f"{state.config.timeline_folder}/{first.file_name}")
    for number in range(count):
        time = (datetime(2020, 1, 1) + timedelta(minutes=number)).strftime("%Y%m%d%H%M%S")
        requested = create_requested(state.storage, state.config, Instant(f"{time}000", first.action, State.REQUESTED))
        inflight = to_inflight(state.storage, state.config, requested)
        complete(state.storage, state.config, inflight, body, partial(str, f"{time}999"))
