"""The bootstrap index, and tables that real Hudi bootstrapped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.index.tagging import file_keys
from hudi_fast.storage.base import Storage
from hudi_fast.view.base_files import folder_values, open_base
from hudi_fast.view.bootstrap_index import SourceFile, find_source, read_sources, write_bootstrap_index
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state
from tests.support.bootstrap_tables import unpack
from tests.support.examples import examples
from tests.support.rows import assert_same_rows

REAL = ("bootstrapped_v9", "bootstrapped_0_15")
NAMES = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=12)


def config_of(storage: Storage) -> TableConfig:
    return TableConfig.from_properties(load_properties(storage), storage.uri)


@pytest.mark.parametrize("name", REAL)
def test_rows_of_a_real_table_are_those_that_hudi_reads_meta_columns_too(name: str, tmp_path: Path) -> None:
    real = unpack(name, tmp_path)
    assert_same_rows(real.table.to_arrow(), real.expected, ignore=())
    assert_same_rows(real.table.to_arrow(query_type="read_optimized"), real.expected, ignore=())


@pytest.mark.parametrize("name", REAL)
def test_both_parts_of_a_real_index_say_the_same(name: str, tmp_path: Path) -> None:
    real = unpack(name, tmp_path)
    storage = Storage(real.path)
    config = config_of(storage)
    sources = read_sources(storage, config)
    assert len(sources) == 6
    for (partition, file_id), source in sources.items():
        assert find_source(storage, config, partition, file_id) == source
        assert source.source_partition == partition
        assert Path(source.uri).stat().st_size == source.size
        assert Path(source.uri).parent == real.source / partition
    assert find_source(storage, config, "city=c9", "nobody") is None


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_filters_and_columns_of_a_real_table(name: str, tmp_path: Path) -> None:
    real = unpack(name, tmp_path)
    for filter_ in (
        pc.field("id") == "k0105",
        pc.field("ts") > 5,
        (pc.field("city") == "c1") & (pc.field("ts") == 3),
        pc.field("_hoodie_record_key") >= "k02",
        pc.field("fare") > 300.0,
    ):
        expected = real.expected.filter(filter_)
        assert_same_rows(real.table.to_arrow(filter=filter_), expected, ignore=())
        assert real.table.to_arrow(["note", "city"], filter_).num_rows == expected.num_rows
    for columns in (["city"], [], ["_hoodie_commit_time"], ["tags", "_hoodie_file_name", "city", "id"]):
        found = real.table.to_arrow(columns)
        assert (found.column_names, found.num_rows) == (columns, real.expected.num_rows)


def test_keys_are_read_without_the_data(tmp_path: Path) -> None:
    real = unpack("bootstrapped_v9", tmp_path)
    for file in real.source.rglob("*.parquet"):
        file.unlink()
    state = load_state(Storage(real.path))
    base = latest_slices(state.view, "city=c0")[0].base_file
    assert base is not None
    with open_base(state.storage, base) as reader:
        assert reader.read(["_hoodie_record_key"]).num_rows == reader.num_rows > 0
        assert reader.footer().bloom_filter is not None
        assert [len(keys) for keys in file_keys(reader, None)] == [reader.num_rows]
    with pytest.raises(hf.CorruptTableError, match=r"was bootstrapped from .*, which is missing.*Restore it"):
        real.table.to_arrow()


def test_a_source_that_was_changed_since_is_refused(tmp_path: Path) -> None:
    real = unpack("bootstrapped_v9", tmp_path)
    file = next(iter(sorted(real.source.rglob("*.parquet"))))
    size = file.stat().st_size
    rows = pq.read_table(file)
    pq.write_table(rows.slice(1), file)
    with pytest.raises(hf.CorruptTableError, match=rf"has \d+ bytes, expected {size}"):
        real.table.to_arrow()


def test_a_damaged_index_says_so(tmp_path: Path) -> None:
    real = unpack("bootstrapped_v9", tmp_path)
    for file in (real.path / ".hoodie/.aux/.bootstrap").rglob("*.hfile"):
        file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(hf.CorruptTableError, match="hfile"):
        real.table.to_arrow()


@settings(max_examples=examples(30))
@given(st.dictionaries(st.tuples(NAMES, NAMES), st.tuples(NAMES, st.integers(0, 2**40)), max_size=20))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, files: dict) -> None:
    storage = Storage(tmp_path_factory.mktemp("index"))
    folders = {partition: folder for (partition, _), (folder, _) in sorted(files.items(), reverse=True)}
    sources = {
        (partition, file_id): SourceFile(partition, file_id, folders[partition], f"/data/{size}.parquet", size, 7)
        for (partition, file_id), (_, size) in files.items()
    }
    write_bootstrap_index(storage, "/data", sources.values(), 99)
    props = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "9",
        "hoodie.bootstrap.base.path": "/data",
    }
    config = TableConfig.from_properties(props, "t")
    assert read_sources(storage, config) == sources
    for (partition, file_id), source in sources.items():
        assert find_source(storage, config, partition, file_id) == source
    elsewhere = TableConfig.from_properties({**props, "hoodie.bootstrap.base.path": "file:/moved/to/"}, "t")
    assert all(one.uri.startswith("/moved/to/") for one in read_sources(storage, elsewhere).values())


@pytest.mark.parametrize(
    ("folder", "fields", "expected"),
    [
        ("", (), {}),
        ("city=c0", ("city",), {"city": "c0"}),
        ("city=a%2Fb", ("city",), {"city": "a/b"}),
        ("city=__HIVE_DEFAULT_PARTITION__", ("city",), {"city": None}),
        ("c0", ("city",), {"city": "c0"}),
        ("2024/05", ("year", "month"), {"year": "2024", "month": "05"}),
        ("year=2024/month=05", ("month", "year"), {"month": "05", "year": "2024"}),
        ("year=2024/month=05", ("month",), {"month": "05"}),
        ("2024/05", ("day",), {}),
        ("year=2024/05", ("year", "month"), {}),
    ],
)
def test_values_in_folder_names(folder: str, fields: tuple[str, ...], expected: dict) -> None:
    assert folder_values(folder, fields) == expected


def test_an_instant_of_that_name_is_no_bootstrap_by_itself(tmp_path: Path) -> None:
    real = unpack("bootstrapped_v9", tmp_path)
    for file in (real.path / ".hoodie/.aux/.bootstrap").rglob("*.hfile"):
        file.unlink()
    state = load_state(Storage(real.path))
    base = latest_slices(state.view, "city=c0")[0].base_file
    assert base is not None
    assert base.is_skeleton
    assert base.source is None
    with open_base(state.storage, base) as reader:
        assert reader.schema == pa.schema([pa.field(name, pa.string()) for name in reader.schema.names])
        assert len(reader.schema) == 5


def test_a_file_opened_by_its_name_alone_is_the_one_that_the_view_gives(tmp_path: Path) -> None:
    real = unpack("bootstrapped_v9", tmp_path)
    state = load_state(Storage(real.path))
    base = latest_slices(state.view, "city=c0")[0].base_file
    assert base is not None
    assert base.source is not None
    assert base.weight == base.size + base.source.size
    with open_base(state.storage, base) as known, open_base(state.storage, replace(base, source=None)) as found:
        assert known.read(known.schema.names).equals(found.read(found.schema.names))
