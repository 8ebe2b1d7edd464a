"""Situations that Apache Hudi has an error for: ours says at least what Hudi's says, names the table or the option, and
says what to do; and the table is as it was.

docs/errors.md has the same lines. Conflicts, locks, damaged files and services have tests of their own.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast import errors
from hudi_fast.config.generated_docs import error_table, with_error_table
from hudi_fast.locking.machine import machine_lock
from hudi_fast.storage.base import Storage
from tests.support.small_tables import listing, options, plain_rows

W = "hoodie.datasource.write."
MOR = {f"{W}table.type": "MERGE_ON_READ"}
ROWS = plain_rows(range(4))
AUTO = options(key=None, ordering=None)


def with_column(name: str, values: pa.Array) -> pa.Table:
    return ROWS.set_column(ROWS.column_names.index(name), name, values)


def write(path: Path, rows: pa.Table = ROWS, mode: str = "append", **changes: str) -> None:
    hf.write(rows, path, {**options(), **changes}, mode)


def with_properties(path: Path, **changes: str) -> None:
    """The table's properties changed behind its back, as another release leaves them."""
    for file in (path / ".hoodie").glob("hoodie.properties*"):
        lines = [line for line in file.read_text().splitlines() if not line.startswith("hoodie.table.checksum")]
        for key, value in changes.items():
            lines = [line for line in lines if line.partition("=")[0] != key] + [f"{key}={value}"]
        file.write_text("\n".join(lines) + "\n")


def at_version(version: str) -> Callable[[Path], None]:
    def act(path: Path) -> None:
        with_properties(path, **{"hoodie.table.version": version})
        hf.HudiTable.open(path)

    return act


def other_option(key: str, value: str) -> Callable[[Path], None]:
    return lambda path: write(path, **{key: value})


def while_locked(path: Path) -> None:
    with machine_lock(Storage(path), 1.0):
        write(path, **{"hoodie.write.lock.wait_time_ms": "20"})


CATALOGUE: dict[str, tuple[Callable[[Path], object], type[hf.HudiError], tuple[str, ...]]] = {
    "a new table without record key and name": (
        lambda path: hf.write(ROWS, path / "new", {}),
        hf.ConfigError,
        ("hoodie.table.name", "must be set"),
    ),
    "read of a missing table": (
        lambda path: hf.HudiTable.open(path / "none"),
        hf.TableNotFoundError,
        ("No Hudi table at", "none", "Create it or fix the path"),
    ),
    "delete from a missing table": (
        lambda path: write(path / "none", **{f"{W}operation": "delete"}),
        hf.TableNotFoundError,
        ("hoodie table at", "none", "does not exist"),
    ),
    "table exists already": (
        lambda path: write(path, mode="errorifexists"),
        hf.TableExistsError,
        ("hoodie table at", "{path}", "already exists"),
    ),
    "append with another table name": (
        other_option("hoodie.table.name", "u"),
        hf.ConfigError,
        ("hoodie.table.name:\tu\tt", "Table t keeps its settings", "write to another table"),
    ),
    "delete with another save mode than append": (
        lambda path: write(path, mode="overwrite", **{f"{W}operation": "delete"}),
        hf.ConfigError,
        ("Append is the only save mode applicable for the delete operation",),
    ),
    "different record key": (
        other_option(f"{W}recordkey.field", "text"),
        hf.ConfigError,
        (
            "Config conflict(key\tcurrent value\texisting value):",
            "RecordKey:\ttext\tid",
            f"Table t keeps its settings. Leave out key ({W}recordkey.field), or write to another table.",
        ),
    ),
    "different ordering field": (
        other_option(f"{W}precombine.field", "text"),
        hf.ConfigError,
        ("Config conflict(key\tcurrent value\texisting value):", "PreCombineKey:\ttext\tts"),
    ),
    "different key generator": (
        other_option(f"{W}keygenerator.class", "org.apache.hudi.keygen.ComplexKeyGenerator"),
        hf.ConfigError,
        ("Config conflict(key\tcurrent value\texisting value):", "KeyGenerator:\tCOMPLEX"),
    ),
    "different partition fields": (
        other_option(f"{W}partitionpath.field", "text"),
        hf.ConfigError,
        ("Config conflict(key\tcurrent value\texisting value):", "PartitionPath:\ttext\tpart"),
    ),
    "different table type": (
        other_option(f"{W}table.type", "MERGE_ON_READ"),
        hf.ConfigError,
        ("Config conflict(key\tcurrent value\texisting value):", f"{W}table.type:\tMERGE_ON_READ\tCOPY_ON_WRITE"),
    ),
    "different merge mode": (
        other_option("hoodie.write.record.merge.mode", "COMMIT_TIME_ORDERING"),
        hf.ConfigError,
        ("hoodie.write.record.merge.mode:\tCOMMIT_TIME_ORDERING\tEVENT_TIME_ORDERING",),
    ),
    "null record key": (
        lambda path: write(path, with_column("id", pa.array(["a", None, "", "b"]))),
        hf.InvalidDataError,
        ("Record key field 'id' cannot be null or empty", "2 of 4 rows", "Fill or drop"),
    ),
    "record key with only null fields": (
        lambda path: hf.write(
            with_column("id", pa.nulls(4, pa.string())).set_column(3, "text", pa.nulls(4, pa.string())),
            path / "new",
            options(key="id,text"),
        ),
        hf.InvalidDataError,
        ("Record key fields 'id', 'text' cannot be null or empty all at once",),
    ),
    "missing record key column": (
        lambda path: hf.write(ROWS, path / "new", options(key="nope")),
        hf.InvalidDataError,
        ("record key", "'nope'", "['id', 'part', 'ts', 'text']", "Add them"),
    ),
    "missing ordering column": (
        lambda path: hf.write(ROWS, path / "new", options(ordering="nope")),
        hf.InvalidDataError,
        ("ordering", "'nope'", "['id', 'part', 'ts', 'text']"),
    ),
    "generated keys without meta columns": (
        lambda path: hf.write(ROWS, path / "new", {**AUTO, "hoodie.populate.meta.fields": "false"}),
        hf.HudiError,
        ("hoodie.populate.meta.fields", "hoodie.datasource.write.recordkey.field"),
    ),
    "generated keys with duplicates dropped": (
        lambda path: hf.write(ROWS, path / "new", {**AUTO, f"{W}insert.drop.duplicates": "true"}),
        hf.HudiError,
        ("hoodie.datasource.insert.dup.policy", "is not supported with auto generation of record keys"),
    ),
    "`_hoodie_is_deleted` column that is not boolean": (
        lambda path: write(path, ROWS.append_column("_hoodie_is_deleted", pa.array(["no"] * 4))),
        hf.SchemaMismatchError,
        ("_hoodie_is_deleted has to be a boolean column", "have string", "cast it"),
    ),
    "insert of stored keys": (
        lambda path: write(path, **{f"{W}operation": "insert", "hoodie.datasource.insert.dup.policy": "fail"}),
        hf.DuplicateKeyError,
        ("k0000", "hoodie.datasource.insert.dup.policy"),
    ),
    "missing column": (
        lambda path: write(path, ROWS.drop_columns(["text"])),
        hf.SchemaMismatchError,
        ("text", "hoodie.write.set.null.for.missing.columns", "{path}"),
    ),
    "incompatible column type": (
        lambda path: write(path, with_column("text", pa.array([True] * 4))),
        hf.SchemaMismatchError,
        ("text", "string", "bool", "{path}"),
    ),
    "meta columns enabled for a table without them": (
        lambda path: (
            hf.write(ROWS, path / "bare", options() | {"hoodie.populate.meta.fields": "false"}),
            hf.write(ROWS, path / "bare", options() | {"hoodie.populate.meta.fields": "true"}),
        ),
        hf.ConfigError,
        ("hoodie.populate.meta.fields:\ttrue\tfalse",),
    ),
    "timestamp key generator without meta columns": (
        lambda path: hf.write(
            ROWS,
            path / "new",
            {
                **options(partition="ts"),
                "hoodie.populate.meta.fields": "false",
                f"{W}keygenerator.type": "TIMESTAMP",
                "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
                "hoodie.keygen.timebased.output.dateformat": "yyyy",
            },
        ),
        hf.HudiError,
        ("TIMESTAMP", "hoodie.populate.meta.fields"),
    ),
    "consistent hashing on a copy-on-write table": (
        lambda path: hf.write(
            ROWS,
            path / "new",
            {**options(index="BUCKET"), "hoodie.index.bucket.engine": "CONSISTENT_HASHING"},
        ),
        hf.ConfigError,
        (
            "Consistent hashing bucket index does not work with",
            "COPY_ON_WRITE",
            "table t",
            "hoodie.index.bucket.engine",
        ),
    ),
    "table version that is too new": (at_version("10"), hf.UnsupportedFeatureError, ("version 10", "{path}")),
    "table version that is too old": (
        lambda path: (
            hf.write(ROWS, path / "new", options(table_version="6")),
            with_properties(path / "new", **{"hoodie.table.version": "4"}),
            write(path / "new"),
        ),
        hf.UnsupportedFeatureError,
        ("table version 4", "{path}/new", "upgrade the table"),
    ),
    "unknown operation": (
        other_option(f"{W}operation", "merge"),
        hf.ConfigError,
        (f"{W}operation", "merge", "upsert"),
    ),
    "unknown query type": (
        lambda path: hf.HudiTable.open(path).to_arrow(query_type="newest"),
        hf.ConfigError,
        ("newest", "snapshot"),
    ),
    "`hoodie.keep.max.commits` below `hoodie.keep.min.commits`": (
        lambda path: write(path, **{"hoodie.keep.min.commits": "20", "hoodie.keep.max.commits": "10"}),
        hf.ConfigError,
        ("hoodie.keep.max.commits", "10", "hoodie.keep.min.commits", "20"),
    ),
    "compaction both inline and scheduled": (
        lambda path: hf.write(
            ROWS,
            path / "new",
            {**options(), **MOR, "hoodie.compact.inline": "true", "hoodie.compact.schedule.inline": "true"},
        ),
        hf.ConfigError,
        ("hoodie.compact.inline", "hoodie.compact.schedule.inline"),
    ),
    "compaction of a copy-on-write table": (
        lambda path: hf.HudiTable.open(path).services.compact(),
        hf.ConfigError,
        ("MERGE_ON_READ", "COPY_ON_WRITE", "{path}"),
    ),
    "concurrent writers without a lock provider": (
        other_option("hoodie.write.concurrency.mode", "optimistic_concurrency_control"),
        hf.ConfigError,
        ("hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL", "hoodie.write.lock.provider"),
    ),
    "table locked by another writer": (
        while_locked,
        hf.LockTimeoutError,
        ("{path}", "is being written by another writer", "hoodie.write.lock.wait_time_ms"),
    ),
    "savepoint of a missing commit": (
        lambda path: hf.HudiTable.open(path).services.savepoint("20200101000000000"),
        hf.HudiError,
        ("20200101000000000", "{path}"),
    ),
    "invalid time": (
        lambda path: hf.HudiTable.open(path).to_arrow(as_of="yesterday"),
        hf.ConfigError,
        ("yesterday", "yyyyMMddHHmmssSSS"),
    ),
    "incremental query without a begin time": (
        lambda path: hf.HudiTable.open(path).incremental(None),  # type: ignore[arg-type]
        hf.ConfigError,
        ("hoodie.datasource.read.begin.instanttime",),
    ),
    "incremental query without meta columns": (
        lambda path: (
            hf.write(ROWS, path / "bare", {**options(), "hoodie.populate.meta.fields": "false"}),
            hf.HudiTable.open(path / "bare").incremental("earliest"),
        ),
        hf.HudiError,
        ("ncremental quer", "hoodie.populate.meta.fields"),
    ),
    "CDC query of a table without change data capture": (
        lambda path: hf.HudiTable.open(path).cdc("earliest"),
        hf.HudiError,
        ("hoodie.table.cdc.enabled",),
    ),
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    hf.write(ROWS, tmp_path / "t", options())
    return tmp_path / "t"


@pytest.mark.slow("table version that is too old", "meta columns enabled for a table without them")
@pytest.mark.parametrize("situation", CATALOGUE)
def test_a_message_says_what_hudis_says_and_more(situation: str, table: Path) -> None:
    act, error, parts = CATALOGUE[situation]
    before = {name: size for name, size in listing(table).items() if "hoodie.properties" not in name}
    with pytest.raises(error) as caught:
        act(table)
    said = str(caught.value)
    assert [part for part in parts if part.format(path=table) not in said] == []
    after = {name: size for name, size in listing(table).items() if not name.startswith(("new/", "bare/"))}
    assert before.items() <= after.items()


def test_the_page_has_a_line_for_each() -> None:
    page = (Path(__file__).parents[1] / "docs" / "errors.md").read_text(encoding="utf-8")
    lines = page.partition("| situation | error |")[2].partition("\n\n")[0].splitlines()[2:]
    listed = [tuple(cell.strip() for cell in line.strip("|").split("|"))[:2] for line in lines]
    assert listed == [(situation, f"`{error.__name__}`") for situation, (_, error, _) in CATALOGUE.items()]


PAGE = Path(__file__).parents[1] / "docs" / "errors.md"


def test_the_table_of_classes_is_what_the_classes_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_error_table(page)  # else: python -m hudi_fast.config.generated_docs docs/errors.md


def test_every_class_says_when_it_is_raised_and_what_to_do() -> None:
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, hf.HudiError)]
    assert [one.__name__ for one in kinds if one is not hf.HudiError and "advice" not in vars(one)] == []
    assert [one.__name__ for one in kinds if error_table().count(f"| `{one.__name__}`") != 1] == []
    assert [one.__name__ for one in kinds if not hasattr(hf, one.__name__)] == []


# ---- a write that happened, although a service after it failed

BROKEN = {"hoodie.clean.commits.retained": "1"}


def with_broken_clean(path: Path) -> Path:
    """A table whose next clean fails: its plan is damaged."""
    for ts in range(2, 5):
        hf.write(plain_rows(range(4), ts=ts), path, {**options(), "hoodie.table.services.enabled": "false"})
    newest = max((path / ".hoodie" / "timeline").glob("*.commit"))
    newest.with_name(f"{int(newest.name[:17]) + 1}.clean.requested").write_bytes(b"Obj\x01 no plan")
    return path


DOORS: dict[str, tuple[Callable[[Path], Any], int]] = {
    "write": (lambda path: hf.write(plain_rows([9], ts=9), path, {**options(), **BROKEN}), 5),
    "insert": (lambda path: hf.HudiTable.open(path).insert(plain_rows([9], ts=9), BROKEN), 5),
    "update": (lambda path: hf.HudiTable.open(path).update(pc.field("id") == "k00001", {"text": "'new'"}, BROKEN), 4),
    "delete": (lambda path: hf.HudiTable.open(path).delete("id = 'k00001'", BROKEN), 3),
    "merge": (
        lambda path: (
            hf.HudiTable.open(path).merge(plain_rows([9], ts=9), BROKEN).on("id").when_not_matched_insert().execute()
        ),
        5,
    ),
    "truncate": (lambda path: hf.HudiTable.open(path).truncate(options=BROKEN), 0),
    "delete partitions": (lambda path: hf.HudiTable.open(path).delete_partitions(["p0"], BROKEN), 2),
    "SQL": (
        lambda path: hf.sql("DELETE FROM t WHERE id = 'k00001'", tables={"t": str(path)}, options=BROKEN),
        3,
    ),
}


@pytest.mark.slow(but="truncate")
@pytest.mark.parametrize("door", DOORS)
def test_a_write_whose_service_failed_tells_that_it_happened(door: str, table: Path) -> None:
    act, rows = DOORS[door]
    with_broken_clean(table)
    with pytest.raises(hf.PostCommitError, match=r"is committed; a service after it failed\. clean: ") as caught:
        act(table)
    error = caught.value
    assert hf.HudiTable.open(table).to_arrow().num_rows == rows
    assert error.instant == error.result.instant == hf.HudiTable.open(table).history()["instant"][-1].as_py()
    assert error.services == ("clean", "archive")
    assert isinstance(error.__cause__, hf.CorruptTableError)
    assert not isinstance(error, hf.CommitError)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.result, copy.services) == (str(error), error.result, error.services)
