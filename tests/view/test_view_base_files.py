"""Tables whose base files are ORC, Lance, HFile or of several formats: every operation, query and service.

Modules: hudi_fast.view.base_files, hudi_fast.formats.base_file, hudi_fast.formats.orc.write.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.formats.avro.rows import AvroEncoder
from hudi_fast.formats.avro.schema import arrow_to_avro
from hudi_fast.formats.hfile.base_file import open_hfile
from hudi_fast.formats.hfile.writer import encode_hfile
from hudi_fast.storage.base import Storage
from hudi_fast.view.base_files import open_file
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import options, plain_rows, rows_of, table_rows

FORMAT, SEVERAL = "hoodie.table.base.file.format", "hoodie.table.multiple.base.file.formats.enable"
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
FORMATS = ["ORC", "LANCE"]
INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
NOW = {"hoodie.compact.inline.max.delta.commits": "1", "hoodie.clean.commits.retained": "1"}


def settings(kind: str, version: str = "9", base: str = "ORC", **more: Any) -> dict[str, Any]:
    table = {FORMAT: base, "hoodie.datasource.write.table.type": kind, "hoodie.compact.inline": "false"}
    return {**options(table_version=version), **table, **more}


def base_files(path: Path) -> list[str]:
    return sorted(one.name for one in path.glob("p*/*.*") if not one.name.startswith("."))


def extensions(path: Path) -> set[str]:
    return {name.rpartition(".")[2] for name in base_files(path)}


def seen_at(path: Path, result: Any) -> str:
    """The time from which an incremental query begins behind a write."""
    state = load_state(Storage(path))
    (written,) = [one for one in state.timeline.writes() if one.requested == result.instant]
    return str(written.completion if state.config.version >= 8 else written.requested)


@pytest.mark.slow(but="MERGE_ON_READ-9-ORC")
@pytest.mark.parametrize("base", FORMATS)
@pytest.mark.parametrize("version", ["9", "6"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_goes_through_every_operation_and_query(kind: str, version: str, base: str, tmp_path: Path) -> None:
    given = settings(kind, version, base)
    hf.write(plain_rows(range(20)), tmp_path, {**given, "hoodie.datasource.write.operation": "bulk_insert"})
    first = hf.write(plain_rows(range(10, 30), ts=2, text="b"), tmp_path, {**given, "hoodie.index.type": "BLOOM"})
    expected = {**rows_of(plain_rows(range(20))), **rows_of(plain_rows(range(10, 30), ts=2, text="b"))}
    assert table_rows(tmp_path) == expected
    table = hf.HudiTable.open(tmp_path)
    assert table.count() == 30
    assert rows_of(table.to_arrow(filter="id = 'k00012'")) == {"k00012": expected["k00012"]}
    assert table.to_arrow(["text"], filter=pc.field("ts") == 2).num_rows == 20
    hf.write(plain_rows(range(40, 45)), tmp_path, {**given, "hoodie.datasource.write.operation": "insert"})
    table.delete(plain_rows([1, 12]).select(["id", "part"]), {"hoodie.compact.inline": "false"})
    expected |= rows_of(plain_rows(range(40, 45)))
    gone = {"k00001", "k00012"}
    assert table_rows(tmp_path) == {key: row for key, row in expected.items() if key not in gone}
    added = hf.HudiTable.open(tmp_path).incremental(seen_at(tmp_path, first))
    assert rows_of(added) == rows_of(plain_rows(range(40, 45)))
    whole = plain_rows(range(0, 6, 2), ts=9, text="c")
    hf.write(whole, tmp_path, {**given, "hoodie.datasource.write.operation": "insert_overwrite"})
    table = hf.HudiTable.open(tmp_path)
    odd = {key: row for key, row in expected.items() if row[0] == "p1" and key not in gone}
    assert rows_of(table.to_arrow()) == {**odd, **rows_of(whole)}
    assert rows_of(table.to_arrow(as_of=first.instant)).keys() == rows_of(plain_rows(range(30))).keys()
    assert extensions(tmp_path) == {base.lower()}
    assert table.services.validate().ok
    if kind == "MERGE_ON_READ":
        assert rows_of(table.to_arrow(query_type="read_optimized"))["k00011"] in (expected["k00011"], ("p1", 1, "a11"))


@pytest.mark.slow
@pytest.mark.parametrize("base", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_services_keep_the_rows_and_the_indexes(kind: str, base: str, tmp_path: Path) -> None:
    given = settings(kind, base=base, **INDEXES, **{"hoodie.clean.automatic": "false"})
    hf.write(plain_rows(range(30)), tmp_path, given)
    second = hf.write(plain_rows(range(10), ts=2, text="b"), tmp_path, given)
    table = hf.HudiTable.open(tmp_path)
    table.services.savepoint(second.instant, options=given)
    saved = table_rows(tmp_path)
    hf.write(plain_rows(range(5, 35), ts=3, text="c"), tmp_path, given)
    expected = table_rows(tmp_path)
    assert expected == {**saved, **rows_of(plain_rows(range(5, 35), ts=3, text="c"))}
    assert table.services.validate().ok
    if kind == "MERGE_ON_READ":
        table.services.compact({**given, **NOW})
        assert table_rows(tmp_path) == expected
        assert rows_of(hf.HudiTable.open(tmp_path).to_arrow(query_type="read_optimized")) == expected
    table.services.cluster({**given, "hoodie.clustering.plan.strategy.sort.columns": "text"})
    assert table_rows(tmp_path) == expected
    assert hf.HudiTable.open(tmp_path).services.validate().ok
    last = hf.write(plain_rows(range(3), ts=4, text="d"), tmp_path, given)
    table.services.rollback(last.instant, given)
    table.services.clean({**given, **NOW})
    assert table_rows(tmp_path) == expected
    table.services.restore(second.instant, given)
    assert table_rows(tmp_path) == saved
    assert hf.HudiTable.open(tmp_path).services.validate().ok
    assert extensions(tmp_path) == {base.lower()}


@pytest.mark.slow
@pytest.mark.parametrize("base", FORMATS)
def test_columns_that_were_added_widened_or_renamed_are_read_from_older_files(base: str, tmp_path: Path) -> None:
    given = settings("COPY_ON_WRITE", base=base, **{"hoodie.index.type": "SIMPLE"})
    rows = plain_rows(range(4)).append_column("n", pa.array([1, 2, None, 4], pa.int32()))
    hf.write(rows, tmp_path, given)
    other = plain_rows([11], partitions=20).append_column("n", pa.array([2**40], pa.int64()))
    hf.write(other.append_column("added", pa.array(["x"])), tmp_path, given)
    table = hf.HudiTable.open(tmp_path)
    found = {row["id"]: (row["n"], row["added"]) for row in table.to_arrow(["id", "n", "added"]).to_pylist()}
    assert found == {
        "k00000": (1, None),
        "k00001": (2, None),
        "k00002": (None, None),
        "k00003": (4, None),
        "k00011": (2**40, "x"),
    }
    assert table.to_arrow(["id"], filter="n = 4").to_pylist() == [{"id": "k00003"}]
    table.alter(hf.RenameColumn("n", "number"), hf.DropColumn("added"))
    hf.write(plain_rows([1], ts=5), tmp_path, {**given, "hoodie.write.set.null.for.missing.columns": "true"})
    rows = hf.HudiTable.open(tmp_path).to_arrow(["id", "number"]).to_pylist()
    assert {row["id"]: row["number"] for row in rows} == {key: n for key, (n, _) in found.items()} | {"k00001": None}


@pytest.mark.slow
def test_a_table_may_have_base_files_of_several_formats(tmp_path: Path) -> None:
    given = {**settings("COPY_ON_WRITE"), SEVERAL: "true", FORMAT: "PARQUET", **INDEXES}
    hf.write(plain_rows(range(10)), tmp_path, given)
    hf.write(plain_rows([1, 11], ts=2, text="b"), tmp_path, {**given, FORMAT: "ORC"})
    assert extensions(tmp_path) == {"parquet", "orc"}
    expected = {**rows_of(plain_rows(range(10))), **rows_of(plain_rows([1, 11], ts=2, text="b"))}
    assert table_rows(tmp_path) == expected
    del given[FORMAT]
    hf.write(plain_rows([3], ts=3, text="c"), tmp_path, given)
    expected |= rows_of(plain_rows([3], ts=3, text="c"))
    assert table_rows(tmp_path) == expected
    table = hf.HudiTable.open(tmp_path)
    assert table.services.validate().ok
    table.services.cluster(given)
    assert table_rows(tmp_path) == expected


def test_another_format_than_the_tables_own_is_a_conflict(tmp_path: Path) -> None:
    hf.write(plain_rows(range(2)), tmp_path, settings("COPY_ON_WRITE"))
    with pytest.raises(hf.ConfigError, match=r"hoodie\.table\.base\.file\.format:\tPARQUET\tORC"):
        hf.write(plain_rows(range(2)), tmp_path, {**settings("COPY_ON_WRITE"), FORMAT: "PARQUET"})
    with pytest.raises(hf.ConfigError, match=r"multiple\.base\.file"):
        hf.write(plain_rows(range(2)), tmp_path, {**settings("COPY_ON_WRITE"), SEVERAL: "true"})


@pytest.mark.parametrize("base", FORMATS)
def test_change_data(base: str, tmp_path: Path) -> None:
    given = settings("COPY_ON_WRITE", base=base, **{"hoodie.table.cdc.enabled": "true"})
    first = hf.write(plain_rows(range(4)), tmp_path, given)
    hf.write(plain_rows([1], ts=2, text="b"), tmp_path, given)
    table = hf.HudiTable.open(tmp_path)
    assert table.cdc(seen_at(tmp_path, first)).select(["op"]).to_pylist() == [{"op": "u"}]


def test_a_table_with_hfile_base_files_is_read_and_not_written(tmp_path: Path) -> None:
    given = settings("COPY_ON_WRITE", "6", **{"hoodie.metadata.enable": "false"})
    hf.write(plain_rows(range(6)), tmp_path, given)
    storage = Storage(tmp_path)
    for name in [one.relative_to(tmp_path).as_posix() for one in tmp_path.glob("p*/*.orc")]:
        with open_file(storage, name) as reader:
            rows = reader.read(reader.schema.names)
        _as_hfile(tmp_path, name, rows)
    properties = tmp_path / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("=ORC", "=HFILE"))
    expected = rows_of(plain_rows(range(6)))
    assert table_rows(tmp_path) == expected
    table = hf.HudiTable.open(tmp_path)
    assert rows_of(table.to_arrow(filter="id = 'k00003'")) == {"k00003": expected["k00003"]}
    with pytest.raises(hf.UnsupportedFeatureError, match="base files in HFILE"):
        hf.write(plain_rows([1], ts=2), tmp_path, options())
    with open_hfile(storage, next(one.relative_to(tmp_path).as_posix() for one in tmp_path.glob("p*/*.hfile"))) as one:
        assert one.num_rows == 3


def _as_hfile(table: Path, name: str, rows: pa.Table) -> None:
    """Replace an ORC file by an HFile of its rows, as Hudi writes it."""
    avro = arrow_to_avro(rows.schema, "r", "n", meta_fields=True)
    values = AvroEncoder.compile(rows.schema, avro).encode_values(rows.combine_chunks().to_batches()[0])
    keys = rows["_hoodie_record_key"].combine_chunks()
    content = b"".join(bytes(part) for part in encode_hfile(keys, values, avro))
    (table / name).with_suffix(".hfile").write_bytes(content)
    (table / name).unlink()
    for path in table.glob(".hoodie/*.commit"):
        path.write_bytes(path.read_bytes().replace(b".orc", b".hfile"))
