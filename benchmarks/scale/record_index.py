"""Seconds, memory and disk of a record index with very many keys.

::

    keys ─► bulk inserts ─► build ─► lookups ─► a commit with 1 % more keys ─► lookup ─► compaction ─► lookup

Everything is real: the base files with their keys, the commits, the records of the index and its HFiles. Rows have a
key and a number only, so that the table is small. Keys look like UUIDs and come in random order, as the worst case for
sorting and compression. Each step runs in a process of its own, in threads; its peak memory is that of the process.

Usage::

    python -m benchmarks.scale.record_index --keys 100000000
        [--series 1000000,10000000] [--only WORD] [--folder FOLDER] [--keep]

10^8 keys take about 12 GB in the folder, and 8 GB in the folder for temporary files while the index is built.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import hudi_fast as hf
from benchmarks.scale.measure import Measured, growing, measured
from hudi_fast.index.metadata_lookup import RECORD_INDEX, locate_keys
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.maintain import compact_metadata
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.writing.threads import ThreadBackend

Call = Callable[[], str]

OPTIONS = {
    "hoodie.table.name": "keys",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.metadata.compact.max.delta.commits": "1000",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
_WARM_KEYS = 20_000
_ROWS_AT_ONCE = 1_000_000
_HYPHENS = (8, 13, 18, 23)
_KEY_BYTES = 36
_HEX = np.frombuffer(b"".join(b"%02x" % number for number in range(256)), np.uint16)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every step at each size and print its figures."""
    given = _arguments(arguments)
    folder = Path(given.folder or tempfile.mkdtemp(prefix="hudi_fast-keys-"))
    try:
        print(f"{'keys':>11} {'seconds':>8} {'CPU s':>7} {'peak MiB':>9}  step", flush=True)
        for keys in [int(each) for each in given.series.split(",")] if given.series else growing(given.keys):
            path, warm = folder / f"keys-{keys}", folder / "warm"
            for name, step in _steps().items():
                if given.only in name:
                    _print(keys, name, measured(step, str(path), keys, str(warm), _WARM_KEYS))
            if not given.keep:
                shutil.rmtree(path)
                shutil.rmtree(warm)
    finally:
        if not given.keep:
            shutil.rmtree(folder)


def _steps() -> dict[str, Callable[[str, int], Call]]:
    lookups = {f"look {count} keys up": partial(look_up, count) for count in (1000, 100_000, 1_000_000)}
    return {
        "make the table": make,
        "build the index": build,
        **lookups,
        "insert 1 % more keys": insert,
        "look 1000 keys up, in base files and logs": partial(look_up, 1000),
        "compact the metadata table": compact,
        "look 1000 keys up after compaction": partial(look_up, 1000),
    }


# ---- steps


def make(path: str, keys: int) -> Call:
    """The table without an index, in commits of a million rows."""

    def call() -> str:
        shutil.rmtree(path, ignore_errors=True)
        for first in range(0, keys, _ROWS_AT_ONCE):
            hf.write(_rows(first, min(_ROWS_AT_ONCE, keys - first)), path, OPTIONS)
        return f"{_mib(Path(path).glob('*.parquet'))} MiB"

    return call


def build(path: str, keys: int) -> Call:
    def call() -> str:
        hf.HudiTable.open(path).services.index(RECORD_INDEX)
        return _described(path)

    return call


def look_up(count: int, path: str, keys: int) -> Call:
    """Stored keys, spread evenly over the table, and the bytes of the index that were read for them."""
    numbers = np.linspace(0, keys - 1, min(count, keys)).astype(np.uint64)
    wanted = keys_of(np.unique(numbers))

    def call() -> str:
        found = locate_keys(_metadata(path), wanted)
        if (found.numbers < 0).any():
            raise SystemExit(f"{path}: {int((found.numbers < 0).sum())} of {len(wanted)} stored keys were not found")
        return f"{len(wanted)} keys in {len(found.groups)} file groups"

    return call


def insert(path: str, keys: int) -> Call:
    """A whole write of new keys: base files, and log files of the index."""
    rows = _rows(keys, max(1, keys // 100))

    def call() -> str:
        hf.write(rows, path, {**OPTIONS, "hoodie.metadata.global.record.level.index.enable": "true"})
        return _described(path)

    return call


def compact(path: str, keys: int) -> Call:
    def call() -> str:
        table = _metadata(path)
        compact_metadata(table, InstantClock(table.config.timezone), ThreadBackend().map_groups)
        return _described(path)

    return call


# ---- keys


def keys_of(numbers: npt.NDArray[np.uint64]) -> pa.Array:
    """Distinct keys in the form of UUIDs."""
    count = len(numbers)
    halves = np.stack([_mixed(numbers), _mixed(numbers * np.uint64(3) + np.uint64(7))], axis=1)
    digits = _HEX[halves.view(np.uint8)].view(np.uint8).reshape(count, 32)
    text = np.insert(digits, [at - place for place, at in enumerate(_HYPHENS)], ord("-"), axis=1)
    offsets = np.arange(0, _KEY_BYTES * (count + 1), _KEY_BYTES, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text)))


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Numbers in random order: a bijection (the last steps of SplitMix64)."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _rows(first: int, count: int) -> pa.Table:
    numbers = np.arange(first, first + count, dtype=np.uint64)
    return pa.table({"id": keys_of(numbers), "ts": pa.array(np.ones(count, np.int64))})


# ---- shared


def _metadata(path: str) -> MetadataTable:
    table = metadata_of(open_state(Storage(path)))
    if table is None:
        raise SystemExit(f"{path} has no metadata table")
    return table


def _described(path: str) -> str:
    folder = Path(path) / ".hoodie" / "metadata" / RECORD_INDEX
    newest = _metadata(path).groups(RECORD_INDEX)
    logs = sum(len(one.log_files) for one in newest)
    bases = [folder / one.base_file.name for one in newest if one.base_file is not None]
    text = f"{len(newest)} groups, base files {_mib(bases)} MiB, {logs} log files "
    return text + f"{_mib(folder / log.name for one in newest for log in one.log_files)} MiB"


def _mib(paths: Any) -> int:
    return sum(one.stat().st_size for one in paths) >> 20


def _print(keys: int, name: str, found: Measured) -> None:
    figures = f"{found.seconds:>8.2f} {found.cpu:>7.2f} {found.peak_mib:>9.0f}"
    print(f"{keys:>11} {figures}  {name}: {found.result}", flush=True)


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000_000, help="keys of the largest index")
    parser.add_argument("--series", default="", help="numbers of keys, separated by commas")
    parser.add_argument("--only", default="", help="run only steps whose name contains this text")
    parser.add_argument("--folder", default="", help="folder for the tables")
    parser.add_argument("--keep", action="store_true", help="keep the tables")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
