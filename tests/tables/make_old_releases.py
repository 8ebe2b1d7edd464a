"""Make the tables in ``old`` with the releases of Apache Hudi that wrote such tables.

Usage: ``python -m tests.tables.make_old_releases OUT [RELEASE ...]`` after ``make old-hudi``.

Each release makes up to two tables::

    cow   partitions `city` (one row has none), bulk insert of many types, upserts, an insert, a delete, a clean, and an
          archived timeline, with a metadata table
    mor   partitions `day=...`, a compaction, then log files with rows and a delete; from release 0.13 on a planned
          compaction

``*_v4`` is the table of release 0.13.1 after its own ``downgrade_table``: Maven Central has no Spark bundle of 0.11.
"""

from __future__ import annotations

import datetime
import json
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.peer.client import PeerError, RealHudi
from tests.peer.old_releases import SPARK_OF, old_hudi

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("city", pa.string()),
        ("day", pa.string()),
        ("fare", pa.float64()),
        ("seats", pa.int32()),
        ("paid", pa.decimal128(10, 2)),
        ("on", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
        ("rider", pa.struct([("name", pa.string()), ("age", pa.int32())])),
    ]
)
COMMON = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "2",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.bloom.index.filter.type": "SIMPLE",
}
COW = {
    **COMMON,
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.compact.max.delta.commits": "2",
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.commits.archival.batch": "1",
}
MOR = {
    **COMMON,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.enable": "false",
}
PLANNED_FROM = (0, 13)
NO_COW_FROM = (0, 14)
"""COPY_ON_WRITE tables of later releases are beside this folder already."""


def rows(numbers: list[int], ts: int, text: str) -> pa.Table:
    """Rows with these keys; every third has no city."""
    cities = ("rome", "oslo", None)
    return pa.Table.from_pylist(
        [
            {
                "id": f"k{number}",
                "ts": ts,
                "city": cities[number % 3],
                "day": f"2024-05-0{1 + number % 2}",
                "fare": number + ts / 10,
                "seats": number,
                "paid": Decimal(f"{number}.25"),
                "on": datetime.date(2024, 5, 1 + number),
                "at": datetime.datetime(2024, 5, 1, number, ts, tzinfo=datetime.UTC),
                "tags": [text, f"{number}"],
                "rider": {"name": f"{text}{number}", "age": 20 + number},
            }
            for number in numbers
        ],
        schema=SCHEMA,
    )


def release_of(hudi: RealHudi) -> tuple[int, ...]:
    """The numbers of a release, for comparisons."""
    return tuple(map(int, hudi.version.split(".")))


def write(hudi: RealHudi, path: Path, table: pa.Table, options: dict[str, str], operation: str = "upsert") -> None:
    """One write of the release."""
    hudi.write(table, path, {**options, "hoodie.datasource.write.operation": operation})


def make_cow(hudi: RealHudi, path: Path) -> dict[str, str]:
    """The table ``cow``; returns its options."""
    # Release 0.10 cannot merge decimals that its own bulk insert has written.
    write(hudi, path, rows(list(range(6)), 1, "a"), COW, "bulk_insert" if release_of(hudi) > (0, 10, 0) else "insert")
    for ts in range(2, 5):
        write(hudi, path, rows([ts % 6, (ts + 1) % 6], ts, "b"), COW)
    write(hudi, path, rows([6, 7], 9, "c"), COW, "insert")
    write(hudi, path, rows([1], 10, "d"), COW, "delete")
    return COW


def make_mor(hudi: RealHudi, path: Path) -> dict[str, str]:
    """The table ``mor``; returns its options."""
    write(hudi, path, rows(list(range(8)), 5, "a"), MOR)
    write(hudi, path, rows([0, 1], 6, "b"), MOR)
    compacting = {**MOR, "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    write(hudi, path, rows([2, 3], 7, "c"), compacting)
    write(hudi, path, rows([0, 4], 8, "d"), MOR)
    write(hudi, path, rows([5], 4, "late"), MOR)
    write(hudi, path, rows([1, 6], 9, "gone"), MOR, "delete")
    if release_of(hudi) >= PLANNED_FROM:
        hudi.sql(f"CALL run_compaction(op => 'schedule', path => '{path}')")
        write(hudi, path, rows([2, 8], 10, "e"), MOR)
    return MOR


KINDS: dict[str, Callable[[RealHudi, Path], dict[str, str]]] = {"cow": make_cow, "mor": make_mor}


def keep(hudi: RealHudi, reader: RealHudi, path: Path, options: dict[str, str], name: str, out: Path) -> None:
    """Zip the table with what the reading release answers about it."""
    found = reader.read(path)
    told: dict[str, Any] = {"hudi": hudi.version, "answers": reader.version, "options": options, "rows": found.num_rows}
    suffixes = {"commit", "deltacommit", "replacecommit"}
    folder = path / ".hoodie" / ("timeline" if (path / ".hoodie/timeline").exists() else "")
    told["completed"] = sorted(one.name[:17].split(".")[0] for one in folder.iterdir() if one.suffix[1:] in suffixes)
    answers = path.parent / "expected"
    shutil.rmtree(answers, ignore_errors=True)
    answers.mkdir()
    pq.write_table(found, answers / "snapshot.parquet")
    if "MERGE_ON_READ" in options.values():
        optimized = reader.read(path, {"hoodie.datasource.query.type": "read_optimized"})
        pq.write_table(optimized, answers / "read_optimized.parquet")
    (answers / "about.json").write_text(json.dumps(told, indent=1))
    with zipfile.ZipFile(out / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted([*answers.rglob("*"), *path.rglob("*")]):
            if not file.name.endswith(".crc"):
                archive.write(file, file.relative_to(path.parent))


def make(release: str, out: Path) -> None:
    """Both tables of a release; those of 0.13.1 in version 4, too."""
    short = "h" + "".join(f"{int(part):0{1 + at}}" for at, part in enumerate(release.split(".")[:2]))
    # The bundles of 0.9 and 0.10 were built against Spark 3.0: on 3.1 they cannot merge logs for a query.
    with old_hudi(release) as hudi, old_hudi("0.12.0" if release in ("0.9.0", "0.10.0") else release) as reader:
        for kind, maker in KINDS.items():
            if kind == "cow" and release_of(hudi) >= NO_COW_FROM:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                path = Path(scratch) / "table"
                options = maker(hudi, path)
                if (release, kind) != ("0.13.1", "cow"):  # its version 4 is kept, for size
                    keep(hudi, reader, path, options, f"{short}_{kind}", out)
                if release == "0.13.1":
                    hudi.sql(f"CREATE TABLE {kind} USING hudi LOCATION '{path}'")
                    hudi.sql(f"CALL downgrade_table(table => '{kind}', to_version => 'FOUR')")
                    keep(hudi, reader, path, options, f"{short}_{kind}_v4", out)


def main() -> None:
    """Make the tables of the given releases, or of all."""
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for release in sys.argv[2:] or SPARK_OF:
        try:
            make(release, out)
        except PeerError as error:
            sys.exit(f"{release}: {error}\n{error.stack}")


if __name__ == "__main__":
    main()
