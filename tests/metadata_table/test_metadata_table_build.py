"""Metadata tables that are built: files, names and properties are those of Apache Hudi's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.config.metadata_options import MetadataOptions
from hudi_fast.config.properties_file import load_properties
from hudi_fast.metadata_table.read import scan
from hudi_fast.metadata_table.records import RECORD_SCHEMA, RECORD_SCHEMA_0_15, schema_of_commits
from hudi_fast.metadata_table.table import metadata_storage
from hudi_fast.metadata_table.updates.bookkeeping import commit_schema
from hudi_fast.metadata_table.updates.build import group_count, initial_instant
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import read_commit
from tests.metadata_table.stored_metadata import metadata_at
from tests.support.golden import Golden
from tests.support.metadata_checks import assert_metadata_true
from tests.support.small_tables import options, plain_rows

RECORD_INDEX = {"hoodie.metadata.record.index.enable": "true"}
REAL = {"9": ("cow_v9_mixed",), "8": ("cow_v8_mixed",), "6": ("h015_mor", "cow_v6_mixed")}
"""The table with the properties of ours is the first, that with the schema of ours the last."""


@pytest.mark.parametrize("version", ["9", "8", "6"])
def test_properties_and_schema_are_those_of_apache_hudi(
    version: str, golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    reals = [golden(name).table for name in REAL[version]]
    hf.write(plain_rows(range(4)), tmp_path / "t", options(table_version=version))
    own = load_properties(metadata_storage(Storage(tmp_path / "t")))
    assert own == load_properties(metadata_storage(Storage(reals[0])))
    theirs, table = metadata_at(reals[-1]), metadata_at(tmp_path / "t")
    schemas = []
    for one in (theirs, table):
        instant = next(i for i in one.timeline.writes() if i.requested.startswith("0000"))
        schemas.append(read_commit(one.storage, one.config, instant).extra_metadata["schema"])
    assert json.loads(schemas[0]) == json.loads(schemas[1])
    assert commit_schema(RECORD_SCHEMA) == schemas[1]


def test_the_schema_of_a_table_of_0_15_is_that_of_1_2_after_our_write(
    golden: Callable[..., Golden], tmp_path: Path
) -> None:
    """Hudi 1.2 cannot load a metadata table whose newest commit has the schema of 0.15."""
    real = golden("h015_mor", own=True).table
    data = hf.HudiTable.open(real)
    data.upsert(data.to_arrow().slice(0, 1), {"hoodie.metadata.enable": True})
    table = metadata_at(real)
    commits = [read_commit(table.storage, table.config, instant) for instant in table.timeline.writes()]
    schemas = [commit.extra_metadata["schema"] for commit in commits]
    assert (schemas[0], schemas[-1]) == (schema_of_commits(RECORD_SCHEMA_0_15), schema_of_commits())


@pytest.mark.parametrize(("version", "first"), [("9", "000"), ("8", "000"), ("6", "010")])
def test_a_new_table_begins_with_empty_partitions(
    version: str, first: str, golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    hf.write(plain_rows(range(4)), tmp_path / "t", options(table_version=version))
    table = metadata_at(tmp_path / "t")
    times = [one.requested for one in table.timeline.writes()]
    assert times[:2] == [f"00000000000000{int(first) + number:03d}" for number in range(2)]
    data = [one.requested for one in table.data_timeline.writes()]
    assert times[len(table.partitions) :] == data
    for instant in table.timeline.writes():
        metadata = read_commit(table.storage, table.config, instant)
        built = instant.requested.startswith("0000")
        assert metadata.operation_type == ("BULK_INSERT_PREPPED" if built else "UPSERT_PREPPED")
    for partition, prefix in (("files", "files-"), ("column_stats", "col-stats-")):
        for number, one in enumerate(table.groups(partition)):
            assert one.file_id == f"{prefix}{number:04d}-0"
    name = f".files-0000-0_00000000000000{first}.log.1_0-0-0"
    real = golden({"9": "cow_v9_mixed", "8": "cow_v8_mixed", "6": "h015_mor"}[version]).table
    ours = (tmp_path / "t/.hoodie/metadata/files" / name).read_bytes()
    assert ours == (real / ".hoodie/metadata/files" / name).read_bytes()
    marker = (tmp_path / "t/.hoodie/metadata/files/.hoodie_partition_metadata").read_text()
    assert f"commitTime=00000000000000{first}\n" in marker
    assert "partitionDepth=1" in marker


def test_definitions_are_those_of_apache_hudi(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    real = json.loads((golden("mor_v9_record_index").table / ".hoodie/.index_defs/index.json").read_text())
    hf.write(plain_rows(range(4)), tmp_path / "t", {**options(), **RECORD_INDEX})
    made = json.loads((tmp_path / "t/.hoodie/.index_defs/index.json").read_text())
    wanted = real["indexDefinitions"]
    meta = ["_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key"]
    wanted["column_stats"]["sourceFields"] = [*meta, "id", "part", "ts", "text"]
    assert made["indexDefinitions"] == wanted
    props = load_properties(Storage(tmp_path / "t"))
    assert props["hoodie.table.metadata.partitions"] == "column_stats,files,partition_stats,record_index"
    assert props["hoodie.table.metadata.partitions.inflight"] == ""
    assert props["hoodie.table.index.defs.path"] == ".hoodie/.index_defs/index.json"


def test_columns_that_come_later_join_the_definition(tmp_path: Path) -> None:
    hf.write(plain_rows(range(4)), tmp_path / "t", options())
    rows = plain_rows(range(2), ts=2)
    hf.write(rows.append_column("more", rows["ts"]), tmp_path / "t", options())
    made = json.loads((tmp_path / "t/.hoodie/.index_defs/index.json").read_text())
    assert made["indexDefinitions"]["column_stats"]["sourceFields"][-1] == "more"
    assert "more" in scan(metadata_at(tmp_path / "t"), "column_stats")["column_name"].to_pylist()


@pytest.mark.slow(but="COPY_ON_WRITE-9")
@pytest.mark.parametrize("version", ["9", "8", "6"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_partitions_are_built_from_what_the_table_holds(version: str, kind: str, tmp_path: Path) -> None:
    settings = {**options(table_version=version), "hoodie.datasource.write.table.type": kind}
    plain = {**settings, "hoodie.compact.inline": "false", "hoodie.metadata.enable": "false"}
    hf.write(plain_rows(range(20)), tmp_path / "t", plain)
    hf.write(plain_rows(range(5), ts=2), tmp_path / "t", plain)
    assert assert_metadata_true(tmp_path / "t") == ()
    kept = {**settings, **RECORD_INDEX, "hoodie.metadata.index.bloom.filter.enable": "true"}
    hf.write(plain_rows(range(3, 8), ts=3), tmp_path / "t", kept)
    built = assert_metadata_true(tmp_path / "t")
    assert set(built) >= {"bloom_filters", "column_stats", "files", "record_index"}
    table = metadata_at(tmp_path / "t")
    assert len(table.groups("record_index")) == 10
    assert len(table.groups("bloom_filters")) == 4
    builds = [
        one
        for one in table.timeline.writes()
        if one.requested not in {i.requested for i in table.data_timeline.writes()}
    ]
    last = max(one.requested for one in table.data_timeline.writes()[:-1]) if version == "6" else "00000000000000"
    assert [one.requested for one in builds] == [
        f"{last}{(10 if version == '6' else 0) + number:03d}" for number in range(len(built))
    ]
    for instant in builds:
        for stat in read_commit(table.storage, table.config, instant).write_stats():
            assert stat.path.endswith(f"_{instant.requested}.hfile")


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["9", "6"])
def test_files_that_their_commit_does_not_name_are_left_out(version: str, tmp_path: Path) -> None:
    """A task attempt that goes on after its write has completed leaves a copy of a file under another name."""
    plain = {**options(table_version=version), "hoodie.metadata.enable": "false"}
    hf.write(plain_rows(range(20)), tmp_path / "t", plain)
    file = next((tmp_path / "t").rglob("*.parquet"))
    file_id, token, rest = file.name.rsplit("_", 2)
    (file.parent / f"{file_id[:-1]}9_{token}_{rest}").write_bytes(file.read_bytes())  # another file group
    (file.parent / f"{file_id}_7-7-7_{rest}").write_bytes(file.read_bytes())
    hf.write(plain_rows(range(3), ts=2), tmp_path / "t", {**options(table_version=version), **RECORD_INDEX})
    found = hf.HudiTable.open(tmp_path / "t").to_arrow(columns=["id", "ts"])
    assert sorted(found["id"].to_pylist()) == sorted(plain_rows(range(20))["id"].to_pylist())
    assert sum(found["ts"].to_pylist()) == 20 + 3


@pytest.mark.slow
def test_a_partitioned_record_index_has_groups_for_each_data_partition(tmp_path: Path) -> None:
    settings = {
        **options(),
        "hoodie.metadata.record.level.index.enable": "true",
        "hoodie.metadata.record.level.index.min.filegroup.count": "2",
    }
    hf.write(plain_rows(range(6)), tmp_path / "t", {**options(), "hoodie.metadata.enable": "false"})
    hf.write(plain_rows(range(2), ts=2), tmp_path / "t", settings)
    hf.write(plain_rows(range(6, 9), partitions=9), tmp_path / "t", settings)
    assert "record_index" in assert_metadata_true(tmp_path / "t")
    ids = [one.file_id for one in metadata_at(tmp_path / "t").groups("record_index")]
    assert ids == [f"record-index-{part}-{n:04d}-0" for part in ("p0", "p1", "p6", "p7", "p8") for n in range(2)]


def test_a_record_index_is_sized_by_records() -> None:
    plain = MetadataOptions()
    assert group_count(0, plain) == 10
    assert group_count(10**10, plain) == 10**10 * 2 // (2**30 // 48)
    assert group_count(10**13, plain) == 10_000
    assert (group_count(0, plain, partitioned=True), group_count(10**12, plain, partitioned=True)) == (1, 10)


def test_initial_instants_are_not_used_twice() -> None:
    assert initial_instant(2, "20260101000000000", []) == "00000000000000000"
    assert initial_instant(2, None, ["00000000000000000", "00000000000000001"]) == "00000000000000002"
    assert initial_instant(1, None, []) == "00000000000000010"
    assert initial_instant(1, "20260101000000000", ["20260101000000000010"]) == "20260101000000000011"
