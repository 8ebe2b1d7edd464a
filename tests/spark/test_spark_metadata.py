"""Records of the metadata table on Spark: the same files, byte for byte, as threads of one process write."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from itertools import compress
from operator import itemgetter
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.errors import InvalidDataError
from hudi_fast.merging.rules import slice_merge
from hudi_fast.metadata_table.layout import group_file_id
from hudi_fast.metadata_table.records import RECORD_SCHEMA
from hudi_fast.metadata_table.stat_values import indexed_columns
from hudi_fast.metadata_table.updates.groups import GroupTarget, GroupWriter, run_in_threads
from hudi_fast.metadata_table.updates.maintain import compact_metadata
from hudi_fast.metadata_table.updates.produce import ProducerContext, sources_of_table
from hudi_fast.metadata_table.updates.produce_functions import Unknown, apply_function
from hudi_fast.spark.backend import SparkBackend
from hudi_fast.spark.metadata_records import write_records
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state, table_schema
from hudi_fast.writing.threads import ThreadBackend
from tests.metadata_table.stored_metadata import clock_of, metadata_at, records, state_of
from tests.support.golden import Golden

PARTITIONS = {"record_index": 5, "column_stats": 2, "bloom_filters": 3, "files": 1}


def table_of(path: Path, rows: pa.Table | None = None) -> ProducerContext:
    """A table of these rows, or of 3000 in four partitions."""
    if rows is None:
        ids, parts = [f"k{number:05}" for number in range(3000)], [f"p{number % 4}" for number in range(3000)]
        rows = pa.table({"id": ids, "part": parts, "ts": pa.array([1] * 3000, pa.int64())})
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.metadata.enable": "false",
        "hoodie.datasource.write.operation": "bulk_insert",
    }
    hf.write(rows, path, settings)
    state = load_state(Storage(path))
    schema = table_schema(state)
    assert schema is not None
    columns = tuple(indexed_columns(schema, "V2", True))
    return ProducerContext(state.storage, state.config, state.view, slice_merge(state), None, schema, columns)


def writer_of(context: ProducerContext, path: Path) -> GroupWriter:
    targets = {
        name: tuple(GroupTarget(group_file_id(name, group)) for group in range(groups))
        for name, groups in PARTITIONS.items()
    }
    path.mkdir()
    return GroupWriter(Storage(path), context.config, "00000000000000000", RECORD_SCHEMA, targets, building=True)


def files_below(path: Path) -> dict[str, int]:
    return {str(one.relative_to(path)): one.stat().st_size for one in sorted(path.rglob("*.hfile"))}


@pytest.mark.smoke
def test_tasks_write_what_threads_write(spark: Any, tmp_path: Path) -> None:
    context = table_of(tmp_path / "t")
    written = {}
    for name, runner in (("threads", run_in_threads), ("tasks", partial(write_records, spark))):
        writer = writer_of(context, tmp_path / name)
        sources = [one for partition in PARTITIONS for one in sources_of_table(context, partition, "0" * 17)]
        stats = runner(sources, writer)
        written[name] = sorted((stat.path, stat.num_writes, stat.file_size) for stat in stats)
    assert written["tasks"] == written["threads"]
    assert sum(rows for path, rows, _ in written["tasks"] if path.startswith("record_index")) == 3000
    assert files_below(tmp_path / "tasks") == files_below(tmp_path / "threads")


@pytest.mark.parametrize(
    ("parts", "text"),
    [(["p0", "p0"], "holds 1 rows more than distinct keys"), (["p0", "p1"], "would get 1 keys twice")],
)
def test_refusals_of_tasks_are_the_callers(spark: Any, tmp_path: Path, parts: list[str], text: str) -> None:
    rows = pa.table({"id": ["k", "k"], "part": parts, "ts": pa.array([1, 1], pa.int64())})
    context = table_of(tmp_path / "t", rows)
    sources = sources_of_table(context, "record_index", "0" * 17)
    with pytest.raises(InvalidDataError, match=text):
        write_records(spark, sources, writer_of(context, tmp_path / "out"))


def test_tasks_compact_what_threads_compact(spark: Any, golden: Callable[[str], Golden], tmp_path: Path) -> None:
    path = golden("mor_v9_record_index").table
    shutil.copytree(path, tmp_path / "copy")
    before = records(path)
    tracker = spark.sparkContext.statusTracker()
    last = max(tracker.getJobIdsForGroup(None), default=-1)
    assert compact_metadata(metadata_at(path), clock_of(state_of(path)), SparkBackend(spark).map_groups)
    assert max(tracker.getJobIdsForGroup(None)) == last + 1
    assert compact_metadata(
        metadata_at(tmp_path / "copy"), clock_of(state_of(tmp_path / "copy")), ThreadBackend().map_groups
    )
    assert records(path) == records(tmp_path / "copy") == before
    table = metadata_at(path)
    assert all(not one.log_files for partition in table.partitions for one in table.groups(partition))


def test_little_work_stays_with_the_driver(spark: Any, tmp_path: Path) -> None:
    context = table_of(tmp_path / "t")
    writer = writer_of(context, tmp_path / "out")
    sources = sources_of_table(context, "files", "0" * 17)
    tracker = spark.sparkContext.statusTracker()
    before = max(tracker.getJobIdsForGroup(None), default=-1)
    assert len(SparkBackend(spark, record_bytes=1 << 20).write_records(sources, writer)) == 1
    assert max(tracker.getJobIdsForGroup(None), default=-1) == before


TEXTS = ["  aBc ", "xxyx", "a€b𝄞c", "", None, "Straße", "a1-b22-", "line\r\n", "12", "2024-2-9", "2024-02-29 23:59:59"]
MOMENTS = [
    *("2024-02-29", "2024-3", "2024", "2023-02-29", "2024-02-29T01:02:03.1234567", "2024-02-29 1:2:3", "+2024-02-29"),
    *("2024-02-29 01:02:03Z", "2024-02-29 01:02:03 UTC", "2024-02-29 01:02:03+05:30", "2024-02-29 01:02:03-18:01"),
    *("2024-02-29 24:00:00", "2024-02-29 01:02", " 2024-02-29 ", "2024-02-29x", "2024-02-29 x", "24-02-29", "now", ""),
    *("2024-10-27 02:30:00", "1950-06-01 12:00:00", "2024-02-29 01:02:03.", "2024-02-29T", "2024-02-29 +01:00"),
    *("02024-01-01", "2024-001-01", "2024-1-1 1:1:1.1 GMT", "9999-12-31 23:59:59", "0001-01-01", "12:30:00", "a-b"),
    "epoch",
]
PATTERNS = {
    "dd.MM.yyyy HH:mm:ss": ["29.02.2024 23:59:59", "01.01.1950 00:00:00", ""],
    "yyyyMMdd": ["20240229", "19700101"],
    "yyyy-MM-dd'T'HH:mm:ss.SSS": ["2024-02-29T01:02:03.045"],
    "HH:mm": ["13:05"],
}
READS = ("to_timestamp", "to_date", "unix_timestamp")
PRINTED = ["yyyy-MM-dd HH:mm:ss", "dd'of'MM.yy", "E EEEE d MMM MMMM", "h:m:s a", "SSS SSSSSS D", "y yyy M H"]


def ours(name: str, values: pa.Array, options: dict[str, str], zone: ZoneInfo) -> list[Any]:
    """Results one by one; "unknown" where they are not computed."""
    found = []
    for at in range(len(values)):
        try:
            results = apply_function(name, values.slice(at, 1), options, zone)
            if pa.types.is_timestamp(results.type):
                results = results.cast(pa.int64())
            found += results.to_pylist()
        except Unknown:
            found.append("unknown")
    return found


def test_functions_of_expression_indexes_give_what_spark_gives(spark: Any) -> None:
    days = [0, -400_000, 19_782, None, 1, -1]
    seconds = [0, -1, 1_709_251_199, None, 1_711_846_800, -1_000_000_000]
    micros = [0, -1, 1_709_251_199_999_999, None, 1_711_846_800_000_001, -500_000]
    zone = ZoneInfo("Europe/Berlin")
    columns = {
        "t": pa.array(TEXTS),
        "m": pa.array(MOMENTS),
        "d": pa.array(days, pa.int32()).cast(pa.date32()),
        "s": pa.array(seconds),
        "u": pa.array(micros).cast(pa.timestamp("us", "UTC")),
        "l": pa.array(micros).cast(pa.timestamp("us")),
    }
    calls: list[tuple[str, str, dict[str, str], str]] = [
        (name, "t", {}, f"{name}(t)") for name in ("lower", "upper", "length", "trim", "ltrim", "rtrim")
    ]
    calls += [
        ("substring", "t", {"pos": str(at), "len": str(count)}, f"substring(t, {at}, {count})")
        for at in (-7, -2, 0, 3)
        for count in (0, 2)
    ]
    for pattern in ("x*", "([a-z])([0-9]+)?", "^.*$", r"\d+|\s", "(?i)B", "a$|\r"):
        text = pattern.replace("\\", "\\\\").replace("\r", "\\r")
        if pattern not in ("x*", "^.*$"):  # it would also separate at empty matches
            calls.append(("split", "t", {"pattern": pattern}, f"split(t, '{text}')"))
        calls.append(("regexp_extract", "t", {"pattern": pattern, "idx": "0"}, f"regexp_extract(t, '{text}', 0)"))
        if pattern != "x*":
            replaced = {"pattern": pattern, "replacement": "<$0>"}
            calls.append(("regexp_replace", "t", replaced, f"regexp_replace(t, '{text}', '<$0>')"))
    for name in ("year", "month", "day", "to_date", "hour", "to_timestamp", "unix_timestamp"):
        calls += [(name, column, {}, f"{name}({column})") for column in "mdul" if (name, column) != ("hour", "d")]
    calls += [(name, "d", {"days": "40"}, f"{name}(d, 40)") for name in ("date_add", "date_sub")]
    for pattern in PRINTED:
        quoted = pattern.replace("'", "\\'")
        calls.append(("date_format", "u", {"format": pattern}, f"date_format(u, '{quoted}')"))
        calls.append(("from_unixtime", "s", {"format": pattern}, f"from_unixtime(s, '{quoted}')"))
    calls.append(("from_unixtime", "s", {}, "from_unixtime(s)"))
    number = max(map(len, columns.values()))
    padded = [[*column.to_pylist(), *[None] * (number - len(column))] for column in columns.values()]
    settings = {"spark.sql.session.timeZone": "Europe/Berlin", "spark.sql.ansi.enabled": "false"} | {
        "spark.sql.codegen.wholeStage": "false",  # compiling so many expressions takes longer than computing them
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        rows = list(zip(*padded, range(number), strict=True))
        frame = spark.createDataFrame(rows, "t string, m string, d date, s bigint, u timestamp, l timestamp_ntz, n int")
        made = [f"{_number(call)} AS c{at}" for at, call in enumerate(calls)]
        found = sorted(frame.coalesce(1).selectExpr("n", *made).collect(), key=itemgetter(0))
        for at, (name, column, options, text) in enumerate(calls):
            expected = [row[at + 1] for row in found][: len(columns[column])]
            got = ours(name, columns[column], options, zone)
            known = [mine != "unknown" for mine in got]
            assert list(compress(got, known)) == list(compress(expected, known)), text
            assert sum(known) > 3, text
        for pattern, texts in PATTERNS.items():
            quoted = pattern.replace("'", "\\'")
            calls = [(name, "m", {"format": pattern}, f"{name}(m, '{quoted}')") for name in READS]
            read = spark.createDataFrame([(text,) for text in texts], "m string").selectExpr(*map(_number, calls))
            rows = read.collect()
            for place, (name, _, options, text) in enumerate(calls):
                assert ours(name, pa.array(texts), options, zone) == [row[place] for row in rows], text
    finally:
        for name, was in before.items():
            spark.conf.unset(name) if was is None else spark.conf.set(name, was)


def _number(call: tuple[str, str, dict[str, str], str]) -> str:
    """The expression; timestamps as numbers, which do not depend on the zone of this process."""
    return f"unix_micros({call[3]})" if call[0] == "to_timestamp" else call[3]
