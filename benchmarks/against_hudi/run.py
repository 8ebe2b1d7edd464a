"""Compare hudi_fast with Apache Hudi's Spark bundle: same data, same starting table, same cores, rows checked.

Data flow of one case: Apache Hudi writes the starting table once. For reads and compaction of MERGE_ON_READ tables the
starting table has updates in log files. Each side writes to a copy of it, or reads it, in a separate process
(:mod:`hudi_side` under ``.venv-hudi``, :mod:`our_side` under ``.venv``, and for reads :mod:`hudi_rs_side`). The rows of
every result are compared with the rows expected from the input, before any time is printed. ``x`` is Apache Hudi's
seconds divided by the seconds of the side. ``--earlier`` supplies the results of sides that do not run now, from the
JSON of another run on the same machine.

Usage::

    .venv/bin/python benchmarks/against_hudi/run.py --scratch FOLDER [--rows 2000000] [--codecs zstd,default]
        [--sides hudi,hudi_rs,local,spark,spark_rows] [--cases bulk_insert,up1,...] [--runs 3] [--hudi-runs 3]
        [--version 1.2.0] [--json FILE] [--earlier FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from data import BASE_OF, COLUMNS, expected_rows, make_data, read_rows
from report import Result, machine, report
from sides import SIDES, run_side

READERS, WRITERS = frozenset({"hudi_rs"}), frozenset({"spark_rows"})
READS = ("incremental", "read")
SMALL_RUNS = 7
RECORD = "RECORD_INDEX"
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"


@dataclass(frozen=True, slots=True)
class Bench:
    """State of all cases: folders, settings, and how to measure."""

    data: Path
    scratch: Path
    sides: tuple[str, ...]
    runs: int
    hudi_runs: int
    cores: int
    version: str


# ---- one function per case


def bulk_insert(bench: Bench, codec: str) -> Result:
    """All rows into a new table of 20 file groups."""
    return _measure(bench, "bulk_insert", codec, COW, "bulk_insert", "base", bench.runs)


def upsert_1(bench: Bench, codec: str) -> Result:
    """1 % of the rows updated, COW."""
    return _measure(bench, "up1", codec, COW, "upsert", "up1", bench.runs)


def upsert_10(bench: Bench, codec: str) -> Result:
    """10 % updated and 2.5 % new, COW."""
    return _measure(bench, "up10", codec, COW, "upsert", "up10", bench.runs)


def upsert_100(bench: Bench, codec: str) -> Result:
    """Every row updated, COW."""
    return _measure(bench, "up100", codec, COW, "upsert", "up100", bench.runs)


def upsert_small(bench: Bench, codec: str) -> Result:
    """100 rows of a table of 1000, COW."""
    return _measure(bench, "small", codec, COW, "upsert", "small_up", max(SMALL_RUNS, bench.runs))


def tagging(bench: Bench, codec: str) -> Result:
    """A delete of as many keys as the table has, none of them stored, with lookups in bloom filters."""
    return _measure(bench, "tagging", codec, COW, "delete", "absent", bench.runs, index="BLOOM")


def record_index(bench: Bench, codec: str) -> Result:
    """10 % updated and 2.5 % new, COW, with lookups in the record index."""
    return _measure(bench, "record", codec, COW, "upsert", "up10", bench.runs, RECORD)


def record_tagging(bench: Bench, codec: str) -> Result:
    """A delete of as many keys as the table has, none of them stored, with lookups in the record index."""
    return _measure(bench, "record_tag", codec, COW, "delete", "absent", bench.runs, RECORD)


def mor_record_index(bench: Bench, codec: str) -> Result:
    """10 % updated and 2.5 % new, MOR, with lookups in the record index."""
    return _measure(bench, "mor_record", codec, MOR, "upsert", "up10", bench.runs, RECORD)


def plain_upsert_10(bench: Bench, codec: str) -> Result:
    """10 % updated and 2.5 % new, COW, without a metadata table on any side."""
    return _measure(bench, "plain_up10", codec, COW, "upsert", "up10", bench.runs, metadata="false")


def plain_upsert_small(bench: Bench, codec: str) -> Result:
    """100 rows of a table of 1000, COW, without a metadata table on any side."""
    runs = max(SMALL_RUNS, bench.runs)
    return _measure(bench, "plain_small", codec, COW, "upsert", "small_up", runs, metadata="false")


def mor_upsert_1(bench: Bench, codec: str) -> Result:
    """1 % of the rows updated, MOR."""
    return _measure(bench, "mor_up1", codec, MOR, "upsert", "up1", bench.runs)


def mor_upsert_10(bench: Bench, codec: str) -> Result:
    """10 % updated and 2.5 % new, MOR."""
    return _measure(bench, "mor_up10", codec, MOR, "upsert", "up10", bench.runs)


def mor_upsert_100(bench: Bench, codec: str) -> Result:
    """Every row updated, MOR."""
    return _measure(bench, "mor_up100", codec, MOR, "upsert", "up100", bench.runs)


def mor_read_1(bench: Bench, codec: str) -> Result:
    """Snapshot of all columns; 1 % of the rows have a newer version in Avro log blocks."""
    return _measure_read(bench, "mor_read1", codec, "up1")


def mor_read_10(bench: Bench, codec: str) -> Result:
    """The same with 10 % of the rows in log blocks."""
    return _measure_read(bench, "mor_read10", codec, "up10")


def mor_read_100(bench: Bench, codec: str) -> Result:
    """The same with every row in log blocks."""
    return _measure_read(bench, "mor_read100", codec, "up100")


def incremental_1(bench: Bench, codec: str) -> Result:
    """Incremental read of all columns of the last commit, an upsert of 1 % of the rows, COW."""
    return _measure_incremental(bench, "incr1", codec, COW, "up1")


def mor_incremental_1(bench: Bench, codec: str) -> Result:
    """The same for a MOR table, with these rows in log blocks."""
    return _measure_incremental(bench, "mor_incr1", codec, MOR, "up1")


def mor_compact(bench: Bench, codec: str) -> Result:
    """Plan and run a compaction of file groups; every row is also in the log."""
    start, warm = _logged_table(bench, codec, "up100"), _logged_table(bench, codec, "small_up")
    more = {"start": start, "warm-start": warm}
    return _measure_sides(bench, "mor_compact", codec, MOR, "compact", "up100", bench.runs, more)


def cluster_sort(bench: Bench, codec: str) -> Result:
    """Plan and run a clustering that sorts the rows of every partition by two columns, COW."""
    return _measure_clustering(bench, "cluster_sort", codec, "rider,ts")


def cluster_copy(bench: Bench, codec: str) -> Result:
    """The same without sorting: merge small files into larger ones."""
    return _measure_clustering(bench, "cluster_copy", codec, "")


CASES: dict[str, Callable[[Bench, str], Result]] = {
    "bulk_insert": bulk_insert,
    "up1": upsert_1,
    "up10": upsert_10,
    "up100": upsert_100,
    "small": upsert_small,
    "tagging": tagging,
    "record": record_index,
    "record_tag": record_tagging,
    "mor_record": mor_record_index,
    "plain_up10": plain_upsert_10,
    "plain_small": plain_upsert_small,
    "mor_up1": mor_upsert_1,
    "mor_up10": mor_upsert_10,
    "mor_up100": mor_upsert_100,
    "mor_read1": mor_read_1,
    "mor_read10": mor_read_10,
    "mor_read100": mor_read_100,
    "incr1": incremental_1,
    "mor_incr1": mor_incremental_1,
    "mor_compact": mor_compact,
    "cluster_sort": cluster_sort,
    "cluster_copy": cluster_copy,
}


# ---- measuring


def _measure(
    bench: Bench,
    case: str,
    codec: str,
    kind: str,
    operation: str,
    name: str,
    runs: int,
    index: str = "default",
    metadata: str = "true",
) -> Result:
    start = _starting_table(bench, codec, kind, BASE_OF[name], index) if name in BASE_OF else None
    warm_rows, warm_start = bench.data / "small", None
    if start is not None:
        warm_rows, warm_start = bench.data / "small_up", _starting_table(bench, codec, kind, "small", index)
    more = {
        "rows": bench.data / name,
        "start": start,
        "warm-rows": warm_rows,
        "warm-start": warm_start,
        "index": index,
        "metadata": metadata,
    }
    return _measure_sides(bench, case, codec, kind, operation, name, runs, more)


def _measure_read(bench: Bench, case: str, codec: str, name: str) -> Result:
    start, warm = _logged_table(bench, codec, name), _logged_table(bench, codec, "small_up")
    return _measure_sides(bench, case, codec, MOR, "read", name, bench.runs, {"start": start, "warm-start": warm})


def _measure_incremental(bench: Bench, case: str, codec: str, kind: str, name: str) -> Result:
    start, warm = _logged_table(bench, codec, name, kind), _logged_table(bench, codec, "small_up", kind)
    more = {"start": start, "warm-start": warm}
    return _measure_sides(bench, case, codec, kind, "incremental", name, bench.runs, more)


def _measure_clustering(bench: Bench, case: str, codec: str, sort: str) -> Result:
    start, warm = _starting_table(bench, codec, COW, "base"), _starting_table(bench, codec, COW, "small")
    more = {"start": start, "warm-start": warm, "sort": sort or None}
    return _measure_sides(bench, case, codec, COW, "cluster", "base", bench.runs, more)


def _measure_sides(
    bench: Bench, case: str, codec: str, kind: str, operation: str, name: str, runs: int, more: dict[str, Any]
) -> Result:
    changes = operation == "incremental"
    expected = read_rows(bench.data, name).sort_by("uuid") if changes else expected_rows(bench.data, name)
    answers = {}
    for side in bench.sides:
        if side in READERS and operation != "read":  # hudi-rs defines incremental queries differently
            continue
        if side in WRITERS and more.get("rows") is None:
            continue
        out = bench.scratch / "out" / f"{case}-{codec}-{side}"
        arguments = {
            **more,
            "operation": operation,
            "out": out,
            "codec": codec,
            "table-type": kind,
            "runs": min(runs, bench.hudi_runs) if side == "hudi" and name != "small_up" else runs,
            "cores": bench.cores,
        }
        answers[side] = _run_side(bench, side, arguments)
        _check_rows(f"{case}, {codec}, {side}", _result_rows(out, kind, operation), expected)
        shutil.rmtree(out)
    return Result(case, codec, answers)


def _starting_table(bench: Bench, codec: str, kind: str, name: str, index: str = "default") -> Path:
    """The table that Apache Hudi bulk inserts from that input; created once, kept in the scratch folder."""
    kept = "-record" if index == RECORD else ""
    table = bench.scratch / "tables" / f"{bench.data.name}-{bench.version}-{codec}-{kind.lower()}-{name}{kept}"
    if not table.exists():
        building = table.with_name(f".{table.name}")
        arguments = {
            "operation": "bulk_insert",
            "rows": bench.data / name,
            "out": building,
            "codec": codec,
            "table-type": kind,
            "index": index if kept else "default",
        }
        _run_side(bench, "hudi", arguments)
        _check_rows(table.name, base_file_rows(building), expected_rows(bench.data, name))
        building.rename(table)
    return table


def _logged_table(bench: Bench, codec: str, name: str, kind: str = MOR) -> Path:
    """A starting table after Apache Hudi upserted that input; a MERGE_ON_READ table has it in log files."""
    start = _starting_table(bench, codec, kind, BASE_OF[name])
    table = start.with_name(f"{start.name}-{name}")
    if not table.exists():
        building = table.with_name(f".{table.name}")
        arguments = {
            "operation": "upsert",
            "rows": bench.data / name,
            "start": start,
            "out": building,
            "codec": codec,
            "table-type": kind,
        }
        _run_side(bench, "hudi", arguments)
        building.rename(table)
    return table


def _run_side(bench: Bench, side: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return run_side(side, arguments, bench.scratch, bench.version)


# ---- rows


def _result_rows(out: Path, kind: str, operation: str) -> pa.Table:
    """The 12 user columns of a side's result: its table, or the rows that it read."""
    if operation in READS:
        return pq.read_table(out, columns=list(COLUMNS))
    # Base files hold all rows of a COW table, and of a compacted table. Those of a clustered table also include
    # replaced file groups.
    plain = operation == "compact" or (kind == COW and operation != "cluster")
    return base_file_rows(out) if plain else snapshot_rows(out)


def snapshot_rows(table: Path) -> pa.Table:
    """The 12 user columns of a table, read by hudi-rs, which is independent of both writers."""
    from hudi import HudiTableBuilder

    batches = HudiTableBuilder.from_base_uri(str(table)).build().read()
    return pa.Table.from_batches(batches).select(list(COLUMNS))


def base_file_rows(table: Path) -> pa.Table:
    """The 12 user columns of the newest base file of every file group, read with pyarrow alone.

    Correct for a COW table without failed or replace commits, like these. Independent of any Hudi reader.
    """
    newest: dict[tuple[Path, str], tuple[str, Path]] = {}
    for file in table.rglob("*.parquet"):
        if ".hoodie" not in file.relative_to(table).parts:
            file_id, _, instant = file.stem.split("_")
            group = (file.parent, file_id)
            newest[group] = max(newest.get(group, ("", file)), (instant, file))
    files = sorted(file for _, file in newest.values())
    return pa.concat_tables(pq.read_table(file, columns=list(COLUMNS), partitioning=None) for file in files)


def _check_rows(what: str, got: pa.Table, expected: pa.Table) -> None:
    if got.num_rows != expected.num_rows:
        raise SystemExit(f"{what}: found {got.num_rows} rows, expected {expected.num_rows}")
    # Compares values, not the nullability of columns.
    same = got.select(expected.column_names).sort_by("uuid").cast(expected.schema)
    for name in expected.column_names:
        if not same[name].equals(expected[name]):
            raise SystemExit(f"{what}: column {name} differs from the expected values")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", type=Path, required=True, help="folder for data and tables; about 5 GB")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--codecs", default="zstd,default")
    parser.add_argument("--sides", default=",".join(SIDES))
    parser.add_argument("--cases", default=",".join(CASES), help=", ".join(CASES))
    parser.add_argument("--runs", type=int, default=3, help="medians are printed")
    parser.add_argument("--hudi-runs", type=int, default=3, help="runs of Apache Hudi, which are long; at most --runs")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--version", default="1.2.0", help="Apache Hudi's release")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--earlier", type=Path, help="--json file of another run, for sides that do not run now")
    arguments = parser.parse_args()
    for name, known in (("sides", SIDES), ("cases", tuple(CASES))):
        wrong = set(getattr(arguments, name).split(",")) - set(known)
        if wrong:
            parser.error(f"--{name}: {', '.join(sorted(wrong))} is none of {', '.join(known)}")
    return arguments


def _earlier(file: Path | None) -> dict[tuple[str, str], dict[str, Any]]:
    """Results of another run by case and codec."""
    if file is None:
        return {}
    told = json.loads(file.read_text())
    return {(one["case"], one["codec"]): {side: one[side] for side in SIDES if side in one} for one in told}


def main() -> None:
    """Run the requested measurements and print the report."""
    wanted = _arguments()
    scratch = wanted.scratch.resolve()
    data = make_data(scratch, wanted.rows)
    bench = Bench(
        data, scratch, tuple(wanted.sides.split(",")), wanted.runs, wanted.hudi_runs, wanted.cores, wanted.version
    )
    earlier = _earlier(wanted.earlier)
    results = []
    for codec in wanted.codecs.split(","):
        for case in wanted.cases.split(","):
            print(f"{case}, {codec} ...", file=sys.stderr, flush=True)
            result = CASES[case](bench, codec)
            results.append(Result(case, codec, {**earlier.get((case, codec), {}), **result.answers}))
    print(f"{wanted.rows} rows, {len(COLUMNS)} columns, 20 file groups; rows of every result compared")
    print(machine(bench.cores, results))
    print(report(results, tuple(side for side in SIDES if any(side in each.answers for each in results))))
    if wanted.json:
        rows = [{"case": each.case, "codec": each.codec, **each.answers} for each in results]
        wanted.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
