"""Bootstraps: what becomes of a folder, what is refused, and everything else that is done to such tables.

Modules: hudi_fast.bootstrapping.bootstrap.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties
from hudi_fast.formats.avro.container import read_single_record, write_single_record
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.avro_models import CLEANER_PLAN
from hudi_fast.view.pending import read_clustering_plan, read_compaction_plan
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state, read_commit
from tests.support.bootstrap_tables import (
    BY_REGEX,
    FULL,
    bootstrap_options,
    changed,
    data,
    make_source,
    source_rows,
    unpack,
)

W = "hoodie.datasource.write."
MOR = {f"{W}table.type": "MERGE_ON_READ"}
PLAIN = {f"{W}partitionpath.field": "city"}


def make(folder: Path, style: str = "hive", **more: Any) -> tuple[hf.HudiTable, pa.Table]:
    rows = data(make_source(folder / "source", style))
    hf.bootstrap(folder / "source", folder / "t", bootstrap_options(**more))
    return hf.HudiTable.open(folder / "t"), rows


def skeletons(table: hf.HudiTable) -> int:
    """How many file groups still keep their data in the folder."""
    state = load_state(Storage(table.path))
    slices = [one for partition in state.view.lister.partitions() for one in latest_slices(state.view, partition)]
    return sum(one.base_file is not None and one.base_file.is_skeleton for one in slices)


def note_of(table: hf.HudiTable) -> dict[str, str]:
    rows = table.to_arrow(["id", "note"])
    return dict(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))


# ---- what becomes of a folder


@pytest.mark.slow(but="none-more5-2-fields5-9")
@pytest.mark.parametrize("version", [9, *(pytest.param(one, marks=pytest.mark.long) for one in (8, 6))])
@pytest.mark.parametrize(
    ("style", "more", "kept", "fields"),
    [
        ("hive", {}, 6, ("city",)),
        ("hive", {**MOR, **BY_REGEX}, 4, ("city",)),
        ("plain", PLAIN, 6, ("city",)),
        ("number", MOR, 6, ("year",)),
        ("two", {}, 6, ("year", "city")),
        ("none", {}, 2, ()),
        ("two", FULL, 0, ("year", "city")),
    ],
)
def test_a_table_has_the_rows_of_its_folder(
    style: str, more: dict[str, Any], kept: int, fields: tuple[str, ...], version: int, tmp_path: Path
) -> None:
    rows = data(make_source(tmp_path / "source", style))
    options = bootstrap_options(**more, hoodie__write__table__version=version)
    result = hf.bootstrap(tmp_path / "source", tmp_path / "t", options)
    table = hf.HudiTable.open(tmp_path / "t")
    assert data(table.to_arrow()).equals(rows)
    assert (result.inserts, result.operation, skeletons(table)) == (rows.num_rows, "bootstrap", kept)
    assert (table.version, table.config.partition_fields) == (version, fields)
    state = load_state(Storage(table.path))
    found = {one.requested: read_commit(state.storage, state.config, one) for one in state.timeline.writes()}
    assert {time: one.operation_type for time, one in found.items()} == {
        time: operation
        for time, operation, done in (
            ("00000000000001", "BOOTSTRAP", kept > 0),
            ("00000000000002", "BULK_INSERT", bool(result.copied)),
        )
        if done
    }
    assert result.instant == max(found)
    assert sum(stat.num_inserts for one in found.values() for stat in one.write_stats()) == rows.num_rows
    assert metadata_of(open_state(state.storage)) is not None
    assert table.services.validate().ok


def test_commits_and_properties_are_those_of_hudi(tmp_path: Path) -> None:
    real = unpack("bootstrapped_v9", tmp_path / "real")
    hf.bootstrap(real.source, tmp_path / "t", bootstrap_options(**MOR))
    ours, theirs = (load_state(Storage(path)) for path in (tmp_path / "t", real.path))
    loose = {"hoodie.bootstrap.base.path", "hoodie.archivelog.folder", "hoodie.table.multiple.base.file.formats.enable"}
    same = [{k: v for k, v in load_properties(one.storage).items() if k not in loose} for one in (ours, theirs)]
    assert same[0] == same[1]
    made, found = (read_commit(one.storage, one.config, one.timeline.writes()[0]) for one in (ours, theirs))
    assert made.extra_metadata == found.extra_metadata
    assert made.operation_type == found.operation_type
    assert sorted((one.partition_path, one.num_writes, one.num_inserts) for one in made.write_stats()) == sorted(
        (one.partition_path, one.num_writes, one.num_inserts) for one in found.write_stats()
    )


def test_columns_of_all_files_are_columns_of_the_table(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32()), "a": [1.5, None]}), source / "1.parquet")
    pq.write_table(pa.table({"b": ["x"], "id": pa.array([2**40], pa.int64())}), source / "2.parquet")
    stamps = pa.table(
        {"id": pa.array([9]), "at": pa.array([1_700_000_000_000_000_000], pa.timestamp("ns", "Asia/Tokyo"))}
    )
    pq.write_table(stamps, source / "3.parquet", use_deprecated_int96_timestamps=True)
    options = {"hoodie.table.name": "t", f"{W}recordkey.field": "id"}
    for name, more in (("kept", {}), ("copied", FULL)):
        hf.bootstrap(source, tmp_path / name, {**options, **more})
        rows = hf.HudiTable.open(tmp_path / name).to_arrow(["id", "a", "b", "at"]).sort_by("id")
        assert rows.schema.types == [pa.int64(), pa.float64(), pa.string(), pa.timestamp("us", "UTC")]
        assert rows.column("id").to_pylist() == [1, 2, 9, 2**40]
        assert rows.column("a").to_pylist() == [1.5, None, None, None]
        assert rows.column("b").to_pylist() == [None, None, None, "x"]
        assert rows.column("at").cast(pa.int64()).to_pylist() == [None, None, 1_700_000_000_000_000, None]


def test_keys_of_several_columns_one_of_them_of_the_folder(tmp_path: Path) -> None:
    more = {"hoodie__datasource__write__recordkey__field": "id,year"}
    table, rows = make(tmp_path, "number", **more)
    found = table.to_arrow().sort_by("id")
    keys = [f"id:{row['id']},year:{row['year']}" for row in rows.to_pylist()]
    assert found.column("_hoodie_record_key").to_pylist() == keys
    table.upsert(changed(rows.slice(0, 2)))
    assert sum(note == "changed" for note in note_of(table).values()) == 2


def test_generated_keys_are_unique(tmp_path: Path) -> None:
    make_source(tmp_path / "source", "none")
    hf.bootstrap(tmp_path / "source", tmp_path / "t", {"hoodie.table.name": "t"})
    keys = hf.HudiTable.open(tmp_path / "t").to_arrow(["_hoodie_record_key"]).column(0)
    assert len(keys.unique()) == len(keys) == 41


def test_escaped_folder_names_are_kept_or_decoded(tmp_path: Path) -> None:
    folder = tmp_path / "source" / "city=a%3Ab"
    folder.mkdir(parents=True)
    pq.write_table(source_rows(0, 3), folder / "1.parquet")
    with pytest.raises(hf.ConfigError, match=r"later writes would put its rows into 'city=a:b'.*urlencode"):
        hf.bootstrap(tmp_path / "source", tmp_path / "t", bootstrap_options())
    encoded = bootstrap_options(hoodie__datasource__write__partitionpath__urlencode="true")
    decoded = {"hoodie.bootstrap.partitionpath.translator.class": "DecodedBootstrapPartitionPathTranslator"}
    for name, options, path in (
        ("kept", encoded, "city=a%3Ab"),
        ("decoded", bootstrap_options(**decoded), "city=a:b"),
    ):
        assert hf.bootstrap(tmp_path / "source", tmp_path / name, options).kept == (path,)
        table = hf.HudiTable.open(tmp_path / name)
        assert table.to_arrow(["city"]).column(0).to_pylist() == ["a:b"] * 3
        table.upsert(changed(data(table.to_arrow()).slice(0, 1)))
        assert table.to_arrow(["id"]).num_rows == 3


def test_overwriting_ignoring_and_appending(tmp_path: Path) -> None:
    table, rows = make(tmp_path)
    with pytest.raises(hf.TableExistsError, match="already exists"):
        hf.bootstrap(tmp_path / "source", tmp_path / "t", bootstrap_options(), mode="append")
    assert hf.bootstrap(tmp_path / "source", tmp_path / "t", bootstrap_options(), mode="ignore").instant == ""
    table.delete(rows.slice(0, 5))
    hf.bootstrap(tmp_path / "source", tmp_path / "t", bootstrap_options(**FULL), mode="overwrite")
    assert data(table.to_arrow()).equals(rows)
    assert skeletons(table) == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["source", "t"]


def test_a_write_with_the_operation_bootstrap_is_one(tmp_path: Path) -> None:
    rows = data(make_source(tmp_path / "source"))
    options = bootstrap_options(**{f"{W}operation": "bootstrap"})
    with pytest.raises(hf.ConfigError, match=r"needs hoodie\.bootstrap\.base\.path"):
        hf.write(pa.table({}), tmp_path / "t", options)
    options["hoodie.bootstrap.base.path"] = str(tmp_path / "source")
    assert hf.write(pa.table({}), tmp_path / "t", options, "overwrite").operation == "bootstrap"
    assert data(hf.HudiTable.open(tmp_path / "t").to_arrow()).equals(rows)


# ---- what is refused


def _none(source: Path) -> None:
    (source / "notes.txt").write_text("x")


def _table(source: Path) -> None:
    make_source(source)
    (source / ".hoodie").mkdir()


def _orc(source: Path) -> None:
    make_source(source)
    (source / "city=c0" / "x.orc").write_bytes(b"ORC")


def _meta(source: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "ts": [1], "_hoodie_record_key": ["a"]}), source / "1.parquet")


def _null(source: Path) -> None:
    pq.write_table(pa.table({"id": ["a", None], "ts": [1, 2]}), source / "1.parquet")


def _types(source: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "ts": [1]}), source / "1.parquet")
    pq.write_table(pa.table({"id": ["b"], "ts": [True]}), source / "2.parquet")


def _uint64(source: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "ts": pa.array([1], pa.uint64())}), source / "1.parquet")


def _damaged(source: Path) -> None:
    (source / "1.parquet").write_bytes(b"PAR1 and no more")


def _no_key(source: Path) -> None:
    pq.write_table(pa.table({"key": ["a"], "ts": [1]}), source / "1.parquet")


def _uneven(source: Path) -> None:
    make_source(source)
    pq.write_table(source_rows(900, 1), source / "more.parquet")


@pytest.mark.parametrize(
    ("make_folder", "more", "error", "message"),
    [
        (_none, {}, hf.ConfigError, "no Parquet file"),
        (_table, {}, hf.ConfigError, "is a Hudi table already"),
        (_orc, {}, hf.UnsupportedFeatureError, r"city=c0/x\.orc"),
        (_meta, {}, hf.InvalidDataError, "_hoodie_record_key"),
        (_null, {}, hf.InvalidDataError, r"null"),
        (_null, FULL, hf.InvalidDataError, r"null"),
        (_types, {}, hf.SchemaMismatchError, r"'ts' is int64 in 1\.parquet and bool in 2\.parquet"),
        (_uint64, {}, hf.SchemaMismatchError, "uint64"),
        (_damaged, {}, hf.CorruptTableError, r"1\.parquet"),
        (_no_key, {}, hf.InvalidDataError, r"record key field\(s\) \['id'\]"),
        (_uneven, {f"{W}partitionpath.field": "city"}, hf.InvalidDataError, r"partition path field\(s\) \['city'\]"),
        (make_source, {f"{W}partitionpath.field": "note"}, hf.ConfigError, None),
        (make_source, {f"{W}hive_style_partitioning": "false"}, hf.ConfigError, r"into 'c0'"),
        (make_source, {"hoodie.populate.meta.fields": "false"}, hf.ConfigError, "meta"),
        (make_source, {"hoodie.index.type": "BUCKET"}, hf.UnsupportedFeatureError, "BUCKET"),
        (make_source, {"hoodie.bootstrap.mode.selector": "a.b.Mine"}, hf.UnsupportedFeatureError, "a.b.Mine"),
        (make_source, {"hoodie.bootstrap.mode.selector.regex": "("}, hf.ConfigError, "not a valid regular expression"),
        (make_source, {"hoodie.bootstrap.index.type": "NO_OP"}, hf.UnsupportedFeatureError, "NO_OP"),
    ],
)
def test_refusals_leave_nothing_behind(
    make_folder: Any, more: dict[str, Any], error: type[Exception], message: str | None, tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    make_folder(tmp_path / "source")
    with pytest.raises(error, match=message):
        hf.bootstrap(tmp_path / "source", tmp_path / "t", bootstrap_options(**more))
    assert [one.name for one in tmp_path.iterdir()] == ["source"]


def test_folders_inside_each_other_and_folders_with_files_are_refused(tmp_path: Path) -> None:
    make_source(tmp_path / "source")
    for place in (tmp_path / "source", tmp_path / "source" / "t", tmp_path):
        with pytest.raises(hf.ConfigError, match="inside the other"):
            hf.bootstrap(tmp_path / "source", place, bootstrap_options(), mode="overwrite")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "letter.txt").write_text("mine")
    with pytest.raises(hf.ConfigError, match=r"holds 'letter\.txt'"):
        hf.bootstrap(tmp_path / "source", tmp_path / "t", bootstrap_options(), mode="overwrite")
    assert (tmp_path / "t" / "letter.txt").read_text() == "mine"


# ---- everything else


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "more"), [("cow", {}), ("mor", MOR), ("mixed", {**MOR, **BY_REGEX, "hoodie.write.table.version": 6})]
)
def test_writes_and_services_on_such_a_table(name: str, more: dict[str, Any], tmp_path: Path) -> None:
    table, rows = make(tmp_path, **more)
    expected = {row["id"]: row["note"] for row in rows.to_pylist()}
    some = rows.filter(pc.is_in(rows.column("id"), pa.array(["k0003", "k0055", "k0101"])))
    table.upsert(changed(some))
    expected |= dict.fromkeys(some.column("id").to_pylist(), "changed")
    assert note_of(table) == expected
    first = table.history().column("instant").to_pylist()[-1]
    table.delete(pc.field("id") == "k0200")
    del expected["k0200"]
    new = changed(rows.slice(0, 2), note="new").set_column(0, "id", pa.array(["n1", "n2"]))
    table.insert(new, {"hoodie.compact.inline": "false"})
    expected |= {"n1": "new", "n2": "new"}
    assert note_of(table) == expected
    if name != "cow":
        assert table.services.compact().instant
        optimized = table.to_arrow(["id", "note"], query_type="read_optimized")
        assert dict(zip(*(column.to_pylist() for column in optimized.columns), strict=True)) == expected
    assert 0 < skeletons(table) < 6
    saved = table.services.savepoint().instant
    assert table.services.cluster().instant
    assert note_of(table) == expected
    assert skeletons(table) == 0
    table.services.restore(saved)
    assert note_of(table) == expected
    assert skeletons(table) > 0
    assert data(table.to_arrow(as_of=first)).num_rows == rows.num_rows
    assert table.services.validate().ok


@pytest.mark.slow
def test_a_group_that_is_written_to_becomes_a_whole_file_and_the_folder_is_left_alone(tmp_path: Path) -> None:
    table, rows = make(tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "source").rglob("*.parquet")}
    table.upsert(changed(rows.slice(0, 1)))
    assert skeletons(table) == 5
    state = load_state(Storage(table.path))
    written = [one.base_file for one in latest_slices(state.view, "city=c0") if one.base_file is not None]
    whole = next(one for one in written if not one.is_skeleton)
    found = pq.read_table(f"{table.path}/{whole.path}", partitioning=None)
    assert data(found).equals(data(table.to_arrow(filter=pc.field("_hoodie_file_name") == whole.name)))
    assert found.column("city").unique().to_pylist() == ["c0"]
    table.insert(changed(rows.slice(0, 1)).set_column(0, "id", pa.array(["n1"])))
    assert skeletons(table) == 5  # an insert fills no skeleton up
    assert {path: path.read_bytes() for path in (tmp_path / "source").rglob("*.parquet")} == before


@pytest.mark.slow
def test_cleaning_and_rolling_back(tmp_path: Path) -> None:
    table, rows = make(tmp_path)
    for ts in (10, 20, 30):
        table.upsert(changed(rows.slice(0, 1), ts), {"hoodie.clean.automatic": "false"})
    last = table.history().column("instant").to_pylist()[-1]
    table.services.rollback(last)
    assert table.to_arrow(filter=pc.field("ts") == 20).num_rows == 1
    table.services.clean({"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1})
    assert skeletons(table) == 5
    assert len(list((tmp_path / "t").rglob("*_00000000000001.parquet"))) == 5
    assert data(table.to_arrow()).num_rows == rows.num_rows
    assert len(list((tmp_path / "source").rglob("*.parquet"))) == 6


@pytest.mark.slow
def test_indexes_are_built_from_skeletons_and_their_files(tmp_path: Path) -> None:
    table, rows = make(tmp_path)
    indexes = {
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    }
    table.upsert(changed(rows.slice(0, 1)), indexes)
    assert skeletons(table) == 5
    assert table.services.validate().ok
    for filter_ in (pc.field("fare") > 330.0, pc.field("id") == "k0101", pc.field("city") == "c2"):
        assert 0 < table.files(filter_).num_rows < 6
        assert data(table.to_arrow(filter=filter_)).equals(data(table.to_arrow()).filter(filter_))
    table.upsert(changed(rows.slice(100, 1), note="by the index"), indexes)
    assert sum(note == "by the index" for note in note_of(table).values()) == 1


@pytest.mark.slow
def test_changes_since_a_bootstrap(tmp_path: Path) -> None:
    table, rows = make(tmp_path)
    first = table.upsert(changed(rows.slice(0, 2))).instant
    assert table.incremental("00000000000000").num_rows == rows.num_rows
    assert table.incremental("000", first).num_rows == rows.num_rows
    assert table.incremental("00000000000001").num_rows == rows.num_rows  # by completion: the bootstrap is later
    bootstrap = load_state(Storage(table.path)).timeline.writes()[0]
    assert bootstrap.requested == "00000000000001"
    assert data(table.incremental(bootstrap.completion)).column("note").to_pylist() == ["changed"] * 2


@pytest.mark.slow("compaction")
@pytest.mark.parametrize("kind", ["compaction", "clustering"])
def test_plans_say_where_the_data_of_skeletons_is_and_reckon_with_it(kind: str, tmp_path: Path) -> None:
    table, rows = make(tmp_path, **MOR)
    storage = Storage(table.path)
    if kind == "compaction":
        table.upsert(changed(rows.slice(0, 1)))
        assert table.services.schedule_compact() is not None
        state = load_state(storage)
        planned = [
            one.source
            for one in read_compaction_plan(storage, state.config, state.timeline.pending_compactions[0]).operations
        ]
        assert len(planned) == 1
    else:
        assert table.services.schedule_cluster() is not None
        state = load_state(storage)
        plan = read_clustering_plan(storage, state.config, state.pending_services[0])
        assert plan is not None
        planned = [one.source for group in plan.groups for one in group.slices]
        assert len(planned) == 6
    assert all(str(one).startswith(str(tmp_path / "source")) and Path(str(one)).is_file() for one in planned)
    bases = [one.base_file for one in latest_slices(load_state(storage).view, "city=c1")]
    sizes = [one.weight - one.size for one in bases if one is not None]
    assert sorted(sizes) == sorted(one.stat().st_size for one in (tmp_path / "source/city=c1").glob("*.parquet"))
    table.services.run_pending()
    assert data(table.to_arrow()).num_rows == rows.num_rows


@pytest.mark.slow
def test_an_archived_bootstrap_and_a_savepoint_of_one(tmp_path: Path) -> None:
    table, rows = make(tmp_path)
    table.services.savepoint("00000000000001")
    for ts in range(10, 13):
        table.upsert(changed(rows.slice(0, 1), ts), {"hoodie.clean.automatic": "false"})
    table.services.restore("00000000000001")
    assert data(table.to_arrow()).equals(rows)
    table.services.delete_savepoint("00000000000001")
    keep = {"hoodie.keep.min.commits": 3, "hoodie.keep.max.commits": 4, "hoodie.clean.commits.retained": 2}
    for ts in range(20, 28):
        table.upsert(changed(rows.slice(0, 1), ts), keep)
    assert "00000000000001" not in [one.requested for one in load_state(Storage(table.path)).timeline.writes()]
    assert data(table.to_arrow()).num_rows == rows.num_rows
    assert skeletons(table) == 5


@pytest.mark.slow
def test_a_clean_that_is_to_delete_files_of_the_folder_is_left_to_hudi(tmp_path: Path) -> None:
    table, rows = make(tmp_path)
    for ts in (10, 20):
        table.upsert(changed(rows.slice(0, 1), ts), {"hoodie.clean.automatic": "false"})
    versions = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
    with pytest.raises(hf.UnsupportedFeatureError, match=r"clean\.delete\.bootstrap\.base\.file"):
        table.services.clean({**versions, "hoodie.clean.delete.bootstrap.base.file": "true"})
    planned = table.services.schedule_clean(versions)
    assert planned is not None
    path = next((tmp_path / "t/.hoodie/timeline").glob("*.clean.requested"))
    record = read_single_record(path.read_bytes())
    source = str(tmp_path / "source/city=c0/part-0-0.parquet")
    infos = record["filePathsToBeDeletedPerPartition"]["city=c0"]
    infos.append({"filePath": source, "isBootstrapBaseFile": True})
    path.write_bytes(write_single_record(CLEANER_PLAN, record))
    with pytest.raises(hf.UnsupportedFeatureError, match="execute it with Apache Hudi"):
        table.services.clean(plan=planned)
    assert Path(source).exists()
    assert all(Path(info["filePath"]).exists() for info in infos)
