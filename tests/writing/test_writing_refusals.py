"""Whatever is wrong with a call is said by its own error, and nothing is written."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.support.small_tables import listing, options, plain_rows, table_rows

GOOD = plain_rows(range(6))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    hf.write(GOOD, tmp_path / "t", options())
    hf.write(plain_rows(range(3), ts=2), tmp_path / "t", options())
    return tmp_path / "t"


def with_column(name: str, values: list[Any], kind: pa.DataType | None = None) -> pa.Table:
    position = GOOD.column_names.index(name)
    return GOOD.set_column(position, name, pa.array(values, kind or GOOD.schema.field(name).type))


def without(*names: str) -> pa.Table:
    return GOOD.drop_columns(list(names))


DATA: dict[str, tuple[pa.Table, dict[str, Any], type[Exception], str]] = {
    "null key": (with_column("id", [None, *"bcdef"]), {}, hf.InvalidDataError, "'id' cannot be null or empty.*row 0"),
    "empty key": (with_column("id", ["a", "", *"cdef"]), {}, hf.InvalidDataError, "'id' cannot be null or empty"),
    "no key column": (without("id"), {}, hf.HudiError, "'id'"),
    "no partition column": (without("part"), {}, hf.HudiError, "'part'"),
    "no ordering column": (without("ts"), {}, hf.HudiError, "'ts'"),
    "column missing": (without("text"), {}, hf.SchemaMismatchError, "'text'.*missing"),
    "type that does not fit": (
        with_column("ts", [True] * 6, pa.bool_()),
        {},
        hf.SchemaMismatchError,
        "'ts' is int64 in the table and bool",
    ),
    "column in another case": (
        GOOD.append_column("Text", pa.array(["x"] * 6)),
        {},
        hf.SchemaMismatchError,
        "only in case",
    ),
    "new column that is not nullable": (
        pa.table([*GOOD.columns, pa.array([1] * 6)], schema=GOOD.schema.append(pa.field("n", pa.int32(), False))),
        {},
        hf.SchemaMismatchError,
        "'n' .* new and not nullable",
    ),
    "type that Hudi cannot hold": (
        GOOD.append_column("u", pa.array([(1, 2, 3)] * 6, pa.month_day_nano_interval())),
        {},
        hf.UnsupportedFeatureError,
        "'u'",
    ),
    "deleted flag that is no boolean": (
        GOOD.append_column("_hoodie_is_deleted", pa.array(["no"] * 6)),
        {},
        hf.SchemaMismatchError,
        "_hoodie_is_deleted has to be",
    ),
    "partition that leaves the table": (
        with_column("part", ["../x"] * 6),
        {},
        hf.InvalidDataError,
        r"\.\.",
    ),
    "partition in the metadata folder": (with_column("part", [".hoodie/x"] * 6), {}, hf.InvalidDataError, "metadata"),
    "other key": (GOOD, {"hoodie.datasource.write.recordkey.field": "text"}, hf.ConfigError, "RecordKey:\ttext\tid"),
    "other partition": (
        GOOD,
        {"hoodie.datasource.write.partitionpath.field": "text"},
        hf.ConfigError,
        "PartitionPath:\ttext\tpart",
    ),
    "other ordering": (
        GOOD,
        {"hoodie.datasource.write.precombine.field": "text"},
        hf.ConfigError,
        "PreCombineKey:\ttext\tts",
    ),
    "other name": (GOOD, {"hoodie.table.name": "u"}, hf.ConfigError, "hoodie.table.name:\tu\tt"),
    "other table type": (
        GOOD,
        {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
        hf.ConfigError,
        "table.type:\tMERGE_ON_READ\tCOPY_ON_WRITE",
    ),
    "other merge mode": (
        GOOD,
        {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
        hf.ConfigError,
        "merge.mode",
    ),
    "hive style all of a sudden": (
        GOOD,
        {"hoodie.datasource.write.hive_style_partitioning": "true"},
        hf.ConfigError,
        "hive_style_partitioning:\ttrue\tfalse",
    ),
    "unknown operation": (GOOD, {"hoodie.datasource.write.operation": "merge"}, hf.ConfigError, "merge"),
    "option that is no number": (GOOD, {"hoodie.parquet.max.file.size": "big"}, hf.ConfigError, "max.file.size"),
    "contradicting duplicates": (
        GOOD,
        {
            "hoodie.datasource.write.insert.drop.duplicates": "true",
            "hoodie.datasource.insert.dup.policy": "fail",
        },
        hf.ConfigError,
        "contradict",
    ),
    "delete field without marker": (GOOD, {"hoodie.payload.delete.field": "text"}, hf.ConfigError, "marker"),
    "key generator of one's own": (
        GOOD,
        {"hoodie.datasource.write.keygenerator.class": "com.example.Mine"},
        hf.HudiError,
        "com.example.Mine",
    ),
    "merger of one's own": (
        GOOD,
        {"hoodie.datasource.write.payload.class": "com.example.Payload"},
        hf.HudiError,
        "com.example.Payload|CUSTOM",
    ),
    "static overwrite": (
        GOOD,
        {"hoodie.datasource.write.operation": "insert_overwrite", "hoodie.datasource.overwrite.mode": "STATIC"},
        hf.UnsupportedFeatureError,
        "hoodie.static.overwrite.partition.paths, or use insert_overwrite_table",
    ),
    "stored key": (
        GOOD,
        {"hoodie.datasource.write.operation": "insert", "hoodie.datasource.insert.dup.policy": "fail"},
        hf.DuplicateKeyError,
        "rows to insert .* 'k0000",
    ),
    "delete without keys": (
        without("id"),
        {"hoodie.datasource.write.operation": "delete"},
        hf.InvalidDataError,
        "'id'",
    ),
    "delete without partitions": (
        without("part"),
        {"hoodie.datasource.write.operation": "delete"},
        hf.InvalidDataError,
        "'part'",
    ),
}


def call(rows: Any, path: Path, settings: dict[str, Any], mode: str = "append") -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hf.write(rows, path, settings, mode=mode)


@pytest.mark.slow(but="other name")
@pytest.mark.parametrize("case", DATA)
def test_a_bad_write_to_a_table_changes_nothing(case: str, table: Path) -> None:
    rows, more, error, text = DATA[case]
    before, stored = listing(table), table_rows(table)
    with pytest.raises(error, match=text):
        call(rows, table, {**options(), **more})
    if error is hf.DuplicateKeyError:  # found while writing: rolled back
        assert {name for name in listing(table) if not name.startswith(".hoodie/")} == {
            name for name in before if not name.startswith(".hoodie/")
        }
    else:
        assert listing(table) == before
    assert table_rows(table) == stored


NEW: dict[str, tuple[pa.Table, dict[str, Any], type[Exception], str]] = {
    name: DATA[name]
    for name in (
        "null key",
        "no key column",
        "no partition column",
        "no ordering column",
        "type that Hudi cannot hold",
        "deleted flag that is no boolean",
        "partition that leaves the table",
        "unknown operation",
        "key generator of one's own",
        "merger of one's own",
    )
} | {
    "neither name nor key": (
        GOOD,
        {"hoodie.table.name": None, "hoodie.datasource.write.recordkey.field": None},
        hf.ConfigError,
        "'hoodie.table.name' must be set",
    ),
    "version that nobody writes": (GOOD, {"hoodie.write.table.version": "7"}, hf.HudiError, "7"),
    "log blocks in HFile of a codec that Hudi cannot read": (
        GOOD,
        {
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.logfile.data.block.format": "hfile",
            "hoodie.hfile.compression.algorithm": "snappy",
        },
        hf.UnsupportedFeatureError,
        "hoodie.hfile.compression.algorithm",
    ),
    "log blocks in HFile and a column key": (
        GOOD.append_column("key", pa.array(["x"] * GOOD.num_rows)),
        {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.logfile.data.block.format": "HFILE"},
        hf.UnsupportedFeatureError,
        "HFile log blocks in a table with a column 'key'",
    ),
    "delete": (GOOD, {"hoodie.datasource.write.operation": "delete"}, hf.TableNotFoundError, "does not exist"),
    "no meta columns and timestamps in paths": (
        GOOD,
        {
            "hoodie.populate.meta.fields": "false",
            "hoodie.datasource.write.partitionpath.field": "ts",
            "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
            "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
            "hoodie.keygen.timebased.output.dateformat": "yyyy",
        },
        hf.ConfigError,
        "meta-fields are disabled",
    ),
    "made-up keys and dropped duplicates": (
        GOOD,
        {
            "hoodie.datasource.write.recordkey.field": None,
            "hoodie.datasource.write.operation": "insert",
            "hoodie.datasource.insert.dup.policy": "drop",
        },
        hf.ConfigError,
        "auto generation of record keys",
    ),
    "upsert with made-up keys": (
        GOOD,
        {"hoodie.datasource.write.recordkey.field": None, "hoodie.datasource.write.operation": "upsert"},
        hf.ConfigError,
        "generates its record keys",
    ),
    "rows that are none": ([1, 2], {}, hf.InvalidDataError, "list"),
}


@pytest.mark.parametrize("case", NEW)
def test_a_bad_first_write_leaves_no_table(case: str, tmp_path: Path) -> None:
    rows, more, error, text = NEW[case]
    settings = {key: value for key, value in {**options(), **more}.items() if value is not None}
    with pytest.raises(error, match=text):
        call(rows, tmp_path / "new", settings)
    assert listing(tmp_path) == {}
    with pytest.raises(hf.TableNotFoundError):
        hf.HudiTable.open(tmp_path / "new")


MODES: dict[str, tuple[str, str, type[Exception], str]] = {
    "delete with overwrite": ("delete", "overwrite", hf.ConfigError, "Append is the only save mode"),
    "delete partitions with ignore": ("delete_partition", "ignore", hf.ConfigError, "Append is the only save mode"),
    "errorifexists": ("upsert", "errorifexists", hf.TableExistsError, "already exists"),
    "error": ("upsert", "error", hf.TableExistsError, "already exists"),
    "unknown mode": ("upsert", "replace", hf.ConfigError, "'replace' is unknown"),
    "bad rows with overwrite": ("upsert", "overwrite", hf.InvalidDataError, "cannot be null"),
}


@pytest.mark.slow("errorifexists", "bad rows with overwrite")
@pytest.mark.parametrize("case", MODES)
def test_a_save_mode_that_forbids_the_write_changes_nothing(case: str, table: Path) -> None:
    operation, mode, error, text = MODES[case]
    rows = DATA["null key"][0] if case.startswith("bad") else GOOD
    before = listing(table.parent)
    with pytest.raises(error, match=text):
        call(rows, table, options(operation=operation), mode)
    assert listing(table.parent) == before


def test_mode_ignore_leaves_a_table_alone_and_makes_one_where_there_is_none(table: Path, tmp_path: Path) -> None:
    before = listing(table)
    result = hf.write(plain_rows([77]), table, options(), mode="ignore")
    assert (result.instant, result.inserts, result.files_written) == ("", 0, 0)
    assert listing(table) == before
    assert hf.write(GOOD, tmp_path / "new", options(), mode="ignore").inserts == 6


BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "properties without name": (
        lambda table: (table / ".hoodie/hoodie.properties").write_text("hoodie.table.type=COPY_ON_WRITE\n"),
        "hoodie.table.name",
    ),
    "properties of another table": (
        lambda table: replace_text(table / ".hoodie/hoodie.properties", "hoodie.table.name=t", "hoodie.table.name=u"),
        "checksum",
    ),
    "no properties": (lambda table: (table / ".hoodie/hoodie.properties").unlink(), "hoodie.properties"),
    "commit cut short": (lambda table: cut(newest_commit(table)), r"\.commit"),
    "commit of zeros": (lambda table: newest_commit(table).write_bytes(b"\0" * 64), r"\.commit"),
    "base file cut short": (lambda table: cut(newest_base_file(table)), r"\.parquet"),
    "base file of zeros": (lambda table: newest_base_file(table).write_bytes(b"\0" * 5000), r"\.parquet"),
    "base file damaged inside": (lambda table: damage(newest_base_file(table)), r"\.parquet"),
}


def replace_text(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4:1200] = b"\xff" * 1196
    path.write_bytes(bytes(content))


def newest_commit(table: Path) -> Path:
    return max((table / ".hoodie/timeline").glob("*.commit"))


def newest_base_file(table: Path) -> Path:
    return max(table.glob("*/*.parquet"), key=lambda path: path.name.rpartition("_")[2])


@pytest.mark.slow(but=("commit cut short", "base file cut short"))
@pytest.mark.parametrize("case", BROKEN)
def test_a_damaged_table_is_named_with_its_file_and_not_written(case: str, table: Path) -> None:
    break_it, text = BROKEN[case]
    break_it(table)
    before = {name: size for name, size in listing(table).items() if not name.startswith(".hoodie/")}
    with pytest.raises(hf.CorruptTableError, match=text):
        hf.HudiTable.open(table).to_arrow()
    with pytest.raises(hf.CorruptTableError, match=text):
        call(GOOD, table, options())
    assert {name: size for name, size in listing(table).items() if not name.startswith(".hoodie/")} == before


@pytest.mark.slow(but="commit cut short")
@pytest.mark.parametrize("case", ["properties of another table", "commit cut short", "base file cut short"])
def test_a_damaged_table_can_be_overwritten(case: str, table: Path) -> None:
    BROKEN[case][0](table)
    hf.write(GOOD, table, options(), mode="overwrite")
    assert len(table_rows(table)) == 6


@pytest.mark.parametrize("make", [lambda path: None, Path.mkdir, lambda path: (path / "p").mkdir(parents=True)])
def test_a_path_without_a_table_is_no_table(make: Callable[[Path], Any], tmp_path: Path) -> None:
    make(tmp_path / "none")
    with pytest.raises(hf.TableNotFoundError, match="No Hudi table at"):
        hf.HudiTable.open(tmp_path / "none")


def test_a_table_must_not_be_created_twice(table: Path) -> None:
    before = listing(table)
    with pytest.raises(hf.TableExistsError):
        hf.HudiTable.create(table, GOOD.schema, options())
    assert listing(table) == before


def test_an_option_that_nobody_knows_is_warned_about_by_name(table: Path) -> None:
    with pytest.warns(hf.HudiWarning, match=r"hoodie\.no\.such\.thing"):
        hf.write(GOOD, table, {**options(), "hoodie.no.such.thing": "1"})


QUERIES: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "unknown column": ({"columns": ["nope"]}, hf.ConfigError, "no column 'nope'"),
    "unknown query": ({"query_type": "best"}, hf.ConfigError, "'best'"),
    "no time": ({"as_of": "yesterday"}, hf.ConfigError, "yesterday"),
}


@pytest.mark.slow(but="unknown column")
@pytest.mark.parametrize("case", QUERIES)
def test_a_bad_query_is_refused(case: str, table: Path) -> None:
    arguments, error, text = QUERIES[case]
    with pytest.raises(error, match=text):
        hf.HudiTable.open(table).to_arrow(**arguments)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["__null__", "__empty__"])
def test_texts_that_stand_for_null_in_keys_are_refused_by_every_write_and_stored_ones_are_changed(text, tmp_path):
    def rows(first):
        kinds = pa.schema([("a", pa.string()), ("b", pa.string()), ("ts", pa.int64())])
        return pa.table([first, ["x"] * len(first), [1] * len(first)], schema=kinds)

    settings = options(key="a,b", partition=None)
    hf.write(rows([None, "k", ""]), tmp_path / "t", settings)
    table = hf.HudiTable.open(tmp_path / "t")
    before = listing(tmp_path)
    merge = table.merge(rows([text])).on(["a", "b"])
    for write in (
        lambda: table.upsert(rows(["new", text])),
        lambda: table.insert(rows([text])),
        lambda: table.bulk_insert(rows([text])),
        lambda: table.upsert(iter(rows([text]).to_batches())),
        lambda: table.delete(rows([text])),
        lambda: merge.when_not_matched_insert().execute(),
        lambda: merge.when_matched_update().when_not_matched_insert().execute(),
        lambda: hf.write(rows([text]), tmp_path / "new", settings),
    ):
        with pytest.raises(hf.InvalidDataError, match=f"Record key field 'a' is '{text}'"):
            write()
    assert listing(tmp_path) == before
    table.update("a is null", {"ts": "2"})
    assert sorted(table.to_arrow(["ts"])["ts"].to_pylist()) == [1, 1, 2]
