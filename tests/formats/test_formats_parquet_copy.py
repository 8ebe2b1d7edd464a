"""Row groups copied as bytes: the same rows, statistics and types, whoever wrote them; damage is told."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.bloom_filter import BloomFilter, union_filters
from hudi_fast.formats.parquet.copy import JoinedFile, join_obstacle
from hudi_fast.formats.parquet.footer import ParquetFooter, read_footer
from hudi_fast.formats.parquet.thrift_compact import (
    I16,
    I64,
    ThriftReader,
    binary,
    fields_of,
    integer,
    integer_of,
    struct,
)
from hudi_fast.storage.base import Storage
from tests.support.golden import Golden

NAME = "_hoodie_file_name"
KEYS = {b"some key": b"some value"}


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": [f"k{number}" for number in numbers],
            NAME: pa.array(["old.parquet"] * count),
            "n": pa.array([None if number % 3 == 0 else number for number in numbers], pa.int64()),
            "x": pa.array([math.nan if number % 5 == 0 else number / 7 for number in numbers]),
            "many": pa.array([[{"a": number, "b": ["u", None]}] * (number % 3) for number in numbers]),
            "known": pa.array([[("k", number)] for number in numbers], pa.map_(pa.string(), pa.int64())),
        }
    )


def write(path: Path, table: pa.Table, **how: Any) -> None:
    how = {"store_schema": False, "row_group_size": 40, **how}
    pq.write_table(table, path, **how)


def join(folder: Path, names: list[str], constants: dict[str, str] | None = None) -> tuple[pq.ParquetFile, int]:
    storage = Storage(folder)
    footers = [read_footer(storage, name) for name in names]
    assert join_obstacle(footers) == ""
    file = JoinedFile(storage, "new/out.parquet", footers, constants or {})
    for footer in footers:
        with storage.open_input(footer.path) as source:
            for group in footer.groups:
                file.copy(source, footer, group)
    size = file.close(KEYS)
    assert file.row_groups == sum(len(footer.groups) for footer in footers)
    return pq.ParquetFile(folder / "new/out.parquet"), size


def same(left: pa.Table, right: pa.Table) -> bool:
    return left.schema.equals(right.schema) and repr(left.to_pylist()) == repr(right.to_pylist())


@pytest.mark.parametrize(
    "how",
    [
        [{}, {}],
        [{"compression": "none"}, {"compression": "zstd"}],
        [{"compression": "gzip", "use_dictionary": False}, {"compression": "snappy", "data_page_version": "2.0"}],
        [{"write_page_index": True}, {"data_page_size": 64, "write_page_checksum": True}],
        [{"row_group_size": 7}, {"row_group_size": 1000}],
    ],
    ids=["plain", "codecs", "pages", "indexes", "groups"],
)
def test_all_columns_but_constant_ones_stay_as_they_are(how: list[dict[str, Any]], tmp_path: Path) -> None:
    tables = [rows(0, 100), rows(100, 60)]
    for number, (table, one) in enumerate(zip(tables, how, strict=True)):
        write(tmp_path / f"{number}.parquet", table, **one)
    made, size = join(tmp_path, ["0.parquet", "1.parquet"], {NAME: "new.parquet"})
    expected = pa.concat_tables(tables)
    at = expected.schema.get_field_index(NAME)
    expected = expected.set_column(at, expected.schema.field(at), pa.array(["new.parquet"] * 160))
    assert same(made.read(), expected)
    assert size == (tmp_path / "new/out.parquet").stat().st_size
    assert made.metadata.metadata == KEYS
    assert made.metadata.num_rows == 160
    assert {one.compression for one in chunks(made.metadata) if one.path_in_schema == NAME} == {"UNCOMPRESSED"}
    assert not any(one.has_column_index or one.has_offset_index for one in chunks(made.metadata))


def chunks(metadata: pq.FileMetaData) -> list[pq.ColumnChunkMetaData]:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return [group.column(number) for group in groups for number in range(group.num_columns)]


def test_statistics_go_along(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", rows(0, 100))
    write(tmp_path / "1.parquet", rows(100, 60))
    made, _ = join(tmp_path, ["0.parquet", "1.parquet"])
    old = [one for number in (0, 1) for one in chunks(pq.read_metadata(tmp_path / f"{number}.parquet"))]
    for before, after in zip(old, chunks(made.metadata), strict=True):
        assert (after.statistics is None) == (before.statistics is None)
        assert after.statistics is None or after.statistics.to_dict() == before.statistics.to_dict()
        sizes = [(one.num_values, one.total_compressed_size, one.total_uncompressed_size) for one in (before, after)]
        assert sizes[0] == sizes[1]
    numbers = made.read(["n"], use_threads=False).column("n").to_pylist()
    found = pq.read_table(tmp_path / "new/out.parquet", filters=[("n", ">", 120)]).column("n").to_pylist()
    assert found == [number for number in numbers if number is not None and number > 120]


def test_pages_are_read_through_their_own_dictionaries(tmp_path: Path) -> None:
    table = pa.table(
        {"s": pa.array([f"text {number % 4}" for number in range(1000)]).dictionary_encode().cast("string")}
    )
    write(tmp_path / "0.parquet", table, row_group_size=250, data_page_size=100)
    made, _ = join(tmp_path, ["0.parquet", "0.parquet"])
    assert same(made.read(), pa.concat_tables([table, table]))
    encoded = pq.read_table(tmp_path / "new/out.parquet", read_dictionary=["s"]).column("s")
    assert encoded.cast(pa.string()).equals(pa.concat_tables([table, table]).column("s"))


def test_a_column_that_may_not_be_null_stays_so(tmp_path: Path) -> None:
    schema = pa.schema([pa.field(NAME, pa.string(), nullable=False), pa.field("n", pa.int32(), nullable=False)])
    table = pa.table([pa.array(["old"] * 5), pa.array(range(5), pa.int32())], schema=schema)
    write(tmp_path / "0.parquet", table)
    made, _ = join(tmp_path, ["0.parquet"], {NAME: "new"})
    assert made.schema_arrow.remove_metadata() == schema
    assert made.read().column(NAME).to_pylist() == ["new"] * 5


def test_row_groups_without_rows_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", rows(0, 5).slice(0, 0))
    write(tmp_path / "1.parquet", rows(0, 30))
    footers = [read_footer(Storage(tmp_path), name) for name in ("0.parquet", "1.parquet")]
    assert [len(footer.groups) for footer in footers] == [0, 1]
    made, _ = join(tmp_path, ["0.parquet", "1.parquet"], {NAME: "new"})
    assert made.read().drop_columns([NAME]).column("id").to_pylist() == rows(0, 30).column("id").to_pylist()


def test_the_writer_that_leaves_nan_out_of_bounds_is_named(golden: Any, tmp_path: Path) -> None:
    table: Golden = golden("cow_v9_clustered")
    java = sorted(table.table.rglob("*.parquet"))
    java = [one for one in java if ".hoodie" not in one.parts]
    name = str(java[0].relative_to(table.table))
    made, _ = join(table.table, [name, name], {NAME: "new"})
    assert made.metadata.created_by.startswith("parquet-mr")
    expected = pq.ParquetFile(java[0]).read().drop_columns([NAME])
    assert same(
        made.read().drop_columns([NAME]).replace_schema_metadata(None),
        pa.concat_tables([expected, expected]).replace_schema_metadata(None),
    )


# ---- what cannot be joined


def footers_of(folder: Path, *tables: pa.Table) -> list[ParquetFooter]:
    for number, table in enumerate(tables):
        write(folder / f"{number}.parquet", table)
    return [read_footer(Storage(folder), f"{number}.parquet") for number in range(len(tables))]


@pytest.mark.parametrize(
    "other",
    [
        rows(0, 5).drop_columns(["n"]),
        rows(0, 5).rename_columns(["id", NAME, "m", "x", "many", "known"]),
        rows(0, 5).set_column(2, "n", pa.array(range(5), pa.int32())),
        rows(0, 5).set_column(2, pa.field("n", pa.int64(), nullable=False), pa.array(range(5))),
    ],
    ids=["fewer", "renamed", "narrower", "never null"],
)
def test_files_with_other_columns_are_not_joined(other: pa.Table, tmp_path: Path) -> None:
    assert join_obstacle(footers_of(tmp_path, rows(0, 5), other)) == "the Parquet schemas of the files differ"


def test_the_name_of_the_root_does_not_matter(tmp_path: Path) -> None:
    footers = footers_of(tmp_path, rows(0, 5), rows(5, 5))
    root = fields_of(ThriftReader(footers[1].schema[0], None), {})
    renamed = struct(root | {4: binary(b"spark_schema")})
    one = ParquetFooter("x", (renamed, *footers[1].schema[1:]), footers[1].groups, footers[1].fields, "")
    assert join_obstacle([footers[0], one]) == ""


def test_encrypted_files_are_not_joined(tmp_path: Path) -> None:
    first, second = footers_of(tmp_path, rows(0, 5), rows(5, 5))
    content = (tmp_path / "1.parquet").read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    fields = fields_of(ThriftReader(content[-8 - length : -8], None), {})
    footer = struct(fields | {9: binary(b"signed with this")})
    (tmp_path / "1.parquet").write_bytes(content[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PARE")
    found = read_footer(Storage(tmp_path), "1.parquet")
    assert join_obstacle([first, second]) == ""
    assert join_obstacle([first, found]) == "a file is encrypted"


# ---- damage


def test_a_file_that_is_cut_short_is_told(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", rows(0, 30))
    content = (tmp_path / "0.parquet").read_bytes()
    for kept in (0, 5, 11, len(content) // 2, len(content) - 9, len(content) - 1):
        (tmp_path / "cut.parquet").write_bytes(content[:kept])
        with pytest.raises(CorruptTableError, match=r"cut\.parquet"):
            read_footer(Storage(tmp_path), "cut.parquet")
    with pytest.raises(CorruptTableError, match=r"none\.parquet"):
        read_footer(Storage(tmp_path), "none.parquet")


def test_row_groups_beyond_the_end_are_told(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", rows(0, 30))
    content = (tmp_path / "0.parquet").read_bytes()
    (tmp_path / "0.parquet").write_bytes(b"PAR1" + content[-(int.from_bytes(content[-8:-4], "little") + 8) :])
    with pytest.raises(CorruptTableError, match="a column chunk within"):
        read_footer(Storage(tmp_path), "0.parquet")


@given(data=st.data())
def test_damaged_footers_raise_nothing_else(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("damage")
    write(folder / "0.parquet", rows(0, 10), compression="none")
    content = bytearray((folder / "0.parquet").read_bytes())
    length = int.from_bytes(content[-8:-4], "little")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(len(content) - 8 - length, len(content) - 9))
        content[at] = data.draw(st.integers(0, 255))
    (folder / "0.parquet").write_bytes(content)
    try:
        footer = read_footer(Storage(folder), "0.parquet")
    except CorruptTableError:
        return
    assert all(chunk.start + chunk.length <= len(content) for group in footer.groups for chunk in group.chunks)


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", rows(0, 30))
    storage = Storage(tmp_path)
    footer = read_footer(storage, "0.parquet")
    file = JoinedFile(storage, "out.parquet", [footer], {NAME: "new"})
    (tmp_path / "short").write_bytes((tmp_path / "0.parquet").read_bytes()[:50])
    with storage.open_input("short") as source, pytest.raises(CorruptTableError, match="ends"):
        file.copy(source, footer, footer.groups[0])
    file.abort()
    assert not (tmp_path / "out.parquet").exists()


@given(st.dictionaries(st.integers(1, 200), st.integers(-(2**63), 2**63 - 1), max_size=8))
def test_structs_of_integers_come_back(values: dict[int, int]) -> None:
    fields = {number: integer(value) for number, value in values.items()}
    found = fields_of(ThriftReader(struct(fields), None), {})
    assert {number: integer_of(found, number) for number in found} == values
    assert all(kind == I64 for kind, _ in found.values())
    assert integer_of({}, 1, 7) == 7
    assert integer(3, I16)[0] == I16


# ---- filters


@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
@pytest.mark.parametrize("counts", [(10, 20, 30), (100, 1, 99), (250, 90, 120, 40), (700, 900)])
def test_a_union_of_filters_has_the_keys_of_all(kind: str, counts: tuple[int, ...]) -> None:
    filters, keys = [], []
    for number, count in enumerate(counts):
        one = BloomFilter.create(100, 1e-4, 500, kind)
        keys.append(pa.array([f"{number}-{key}" for key in range(count)]))
        one.add(keys[-1])
        filters.append(one)
    joined = union_filters(iter(filters), BloomFilter.create(100, 1e-4, 500, kind))
    assert joined is not None
    stored = BloomFilter.from_base64(joined.to_base64(), kind)
    assert all(stored.might_contain(one).all() for one in keys)
    rows_needed = 1 if kind == "SIMPLE" else min(-(-sum(counts) // 100) + len(counts), 5)
    assert len(stored.rows) <= rows_needed
    if sum(counts) <= 100:
        fresh = BloomFilter.create(100, 1e-4, 500, kind)
        for one in keys:
            fresh.add(one)
        assert fresh.to_base64() == stored.to_base64()
    before = [one.to_base64() for one in filters]
    joined.add(pa.array(["another"]))
    assert joined.might_contain(pa.array(["another"])).all()
    assert before == [one.to_base64() for one in filters]


@pytest.mark.parametrize("kind", ["SIMPLE", "DYNAMIC_V0"])
def test_filters_of_other_parameters_do_not_make_a_union(kind: str) -> None:
    like = BloomFilter.create(100, 1e-4, 500, kind)
    assert union_filters([], like) is None
    for other in (
        BloomFilter.create(101, 1e-4, 500, kind),
        BloomFilter.create(100, 1e-5, 500, kind),
        BloomFilter.create(100, 1e-4, 500, "SIMPLE" if kind == "DYNAMIC_V0" else "DYNAMIC_V0"),
    ):
        assert union_filters([like, other], like) is None
