"""The next version of a base file copies the row groups without changes, and the keys of updated ones.

Modules: hudi_fast.writing.patched_file, hudi_fast.writing.rewrite, hudi_fast.services.merge_slices,
hudi_fast.index.tagging.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.formats.parquet.copy import JoinedFile
from hudi_fast.index.tagging import IncomingKeys
from hudi_fast.storage.base import Storage
from hudi_fast.writing import patched_file
from tests.services.test_services_clustering_rewrite import typed_rows
from tests.support.examples import examples
from tests.support.metadata_checks import assert_metadata_true
from tests.support.small_tables import options

PLAIN = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"}
SMALL_GROUPS = {
    "hoodie.parquet.block.size": "1",
    "hoodie.parquet.max.file.size": "200000",
    "hoodie.copyonwrite.record.size.estimate": "50",
}
"""Files are written in parts of a sixteenth of the maximum, and each part is a row group."""
ROWS = 1_980


def settings_of(**more: Any) -> dict[str, Any]:
    return {**options(partition=""), **PLAIN, **SMALL_GROUPS, **more}


@pytest.fixture
def table(tmp_path: Path) -> hf.HudiTable:
    hf.write(typed_rows(range(ROWS)), tmp_path / "t", settings_of())
    return hf.HudiTable.open(tmp_path / "t")


def base_files(path: str | Path) -> list[Path]:
    """The versions of the only file group, oldest first."""
    return sorted(Path(path).glob("*.parquet"), key=lambda file: file.name.rpartition("_")[2])


def groups_of(file: Path) -> list[int]:
    metadata = pq.read_metadata(file)
    return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]


def chunk_bytes(file: Path, group: int, column: str) -> bytes:
    row_group = pq.read_metadata(file).row_group(group)
    found = next(
        chunk
        for chunk in (row_group.column(number) for number in range(row_group.num_columns))
        if chunk.path_in_schema == column
    )
    first = found.data_page_offset if found.dictionary_page_offset is None else found.dictionary_page_offset
    return file.read_bytes()[first : first + found.total_compressed_size]


def newer(numbers: range, ts: int = 2) -> pa.Table:
    rows = typed_rows(numbers, seed=ts)
    return rows.set_column(1, "ts", pa.array([ts] * len(numbers), pa.int64()))


def by_key(rows: pa.Table) -> dict[str, dict[str, Any]]:
    return {
        row["id"]: {name: repr(row[name]) for name in rows.column_names if name[0] != "_"} for row in rows.to_pylist()
    }


def assert_sound(table: hf.HudiTable, expected: dict[str, dict[str, Any]]) -> None:
    """Rows, meta columns, key range, bloom filter and the metadata table of the newest file are right."""
    table = hf.HudiTable.open(table.path)
    found = table.to_arrow()
    assert by_key(found) == expected
    file = base_files(table.path)[-1]
    assert set(found["_hoodie_file_name"].to_pylist()) <= {file.name}
    storage = Storage(str(table.path))
    with open_base_file(storage, file.name) as reader:
        footer = reader.footer()
        keys = found["_hoodie_record_key"].combine_chunks()
        assert footer.bloom_filter is not None
        bloom = BloomFilter.from_base64(footer.bloom_filter, footer.bloom_type, where=file.name)
        assert bloom.might_contain(keys).all()
        assert str(footer.min_key) <= min(keys.to_pylist())
        assert str(footer.max_key) >= max(keys.to_pylist())
    assert_metadata_true(table.path)


@pytest.mark.slow
def test_an_update_of_one_row_group_copies_the_others(table):
    (old,) = base_files(table.path)
    sizes = groups_of(old)
    assert len(sizes) >= 10
    start = sum(sizes[:3])
    changed = newer(range(start + 10, start + 20))
    result = table.upsert(changed)
    assert result.updates == 10
    new = base_files(table.path)[-1]
    assert groups_of(new) == sizes
    for group in range(len(sizes)):
        assert (chunk_bytes(new, group, "amount") == chunk_bytes(old, group, "amount")) == (group != 3)
    assert_sound(table, by_key(typed_rows(range(ROWS))) | by_key(changed))
    times = hf.HudiTable.open(table.path).to_arrow(["_hoodie_commit_time"])["_hoodie_commit_time"].to_pylist()
    assert times.count(result.instant) == 10


@pytest.mark.slow
def test_new_rows_are_encoded_with_a_last_row_group_that_is_not_full(table):
    sizes = groups_of(base_files(table.path)[0])
    assert sizes[-1] < sizes[0] / 2
    expected = by_key(typed_rows(range(ROWS)))
    for first in range(ROWS, ROWS + 200, 20):
        more = typed_rows(range(first, first + 20))
        table.upsert(more, {"hoodie.parquet.block.size": "20000"})
        expected |= by_key(more)
    now = groups_of(base_files(table.path)[-1])
    assert len(now) <= len(sizes) + 2  # of 173 rows or half of that
    assert now[: len(sizes) - 1] == sizes[:-1]
    assert_sound(table, expected)


@pytest.mark.slow
def test_deletes_leave_rows_of_other_row_groups_in_place(table):
    sizes = groups_of(base_files(table.path)[0])
    gone = [f"k{number:05d}" for number in range(sizes[0])]
    table.delete(pa.table({"id": gone}))
    assert groups_of(base_files(table.path)[-1]) == sizes[1:]
    left = {key: row for key, row in by_key(typed_rows(range(ROWS))).items() if key not in gone}
    assert_sound(table, left)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {"hoodie.parquet.compression.codec": "snappy"},
        {"hoodie.index.type": "BLOOM"},
        {"hoodie.table.cdc.enabled": "true"},
        {"hoodie.populate.meta.fields": "false"},
    ],
)
def test_kinds_of_tables(tmp_path, more):
    hf.write(typed_rows(range(ROWS)), tmp_path / "t", settings_of(**more))
    changed = newer(range(700, 720))
    table = hf.HudiTable.open(tmp_path / "t")
    before = base_files(tmp_path / "t")[-1]
    table.upsert(changed, more)
    after = base_files(tmp_path / "t")[-1]
    assert chunk_bytes(before, 0, "amount") == chunk_bytes(after, 0, "amount")
    table = hf.HudiTable.open(tmp_path / "t")
    assert by_key(table.to_arrow()) == by_key(typed_rows(range(ROWS))) | by_key(changed)
    assert table.services.validate().differences.num_rows == 0


def test_a_file_of_another_codec_is_encoded_again(table):
    (old,) = base_files(table.path)
    changed = newer(range(5))
    table.upsert(changed, {"hoodie.parquet.compression.codec": "gzip"})
    metadata = pq.read_metadata(base_files(table.path)[-1])
    assert metadata.row_group(metadata.num_row_groups - 1).column(7).compression == "GZIP"
    assert pq.read_metadata(old).num_row_groups > 1
    assert_sound(table, by_key(typed_rows(range(ROWS))) | by_key(changed))


def test_a_failure_while_row_groups_are_copied_leaves_no_file(table, monkeypatch):
    def fail(self: JoinedFile, *given: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(JoinedFile, "copy", fail)
        with pytest.raises((OSError, hf.HudiError)):
            table.upsert(newer(range(5)))
    assert len(base_files(table.path)) == 1
    changed = newer(range(5), 3)
    table.upsert(changed)
    assert_sound(table, by_key(typed_rows(range(ROWS))) | by_key(changed))


@pytest.mark.slow
def test_a_compaction_copies_row_groups_that_its_log_leaves_alone(tmp_path):
    hf.write(
        typed_rows(range(ROWS)), tmp_path / "t", settings_of(**{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    )
    table = hf.HudiTable.open(tmp_path / "t")
    (old,) = base_files(table.path)
    sizes = groups_of(old)
    changed = newer(range(400, 420))
    table.upsert(changed)
    table.services.compact()
    new = base_files(table.path)[-1]
    assert groups_of(new) == sizes
    same = [chunk_bytes(new, group, "amount") == chunk_bytes(old, group, "amount") for group in range(len(sizes))]
    assert same.count(False) == 1
    assert_sound(table, by_key(typed_rows(range(ROWS))) | by_key(changed))


@pytest.fixture
def copies_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies keys in small files, too."""
    monkeypatch.setattr(patched_file, "_LEAST_GROUP", 0)


def kept_chunks(old: Path, new: Path) -> list[set[str]]:
    """For each row group, the columns with the same bytes in both files."""
    metadata = pq.read_metadata(old)
    names = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    return [
        {name for name in names if chunk_bytes(old, group, name) == chunk_bytes(new, group, name)}
        for group in range(metadata.num_row_groups)
    ]


KEYS = {"_hoodie_record_key", "_hoodie_partition_path", "id"}


@pytest.mark.slow
@pytest.mark.usefixtures("copies_keys")
@pytest.mark.parametrize("block", ["1", "125829120"], ids=["many row groups", "one row group"])
@pytest.mark.parametrize("step", [1, 7], ids=["all rows", "some rows"])
def test_an_update_copies_the_keys_of_every_row_group(tmp_path, block, step):
    settings = settings_of(**{"hoodie.parquet.block.size": block})
    hf.write(typed_rows(range(ROWS)), tmp_path / "t", settings)
    table = hf.HudiTable.open(tmp_path / "t")
    (old,) = base_files(table.path)
    changed = newer(range(0, ROWS, step))
    table.upsert(changed)
    new = base_files(table.path)[-1]
    assert groups_of(new) == groups_of(old)
    for same in kept_chunks(old, new):
        assert KEYS <= same
        assert not same & {"ts", "amount", "_hoodie_commit_seqno", "_hoodie_commit_time"}
    assert_sound(table, by_key(typed_rows(range(ROWS))) | by_key(changed))


@pytest.mark.slow
@pytest.mark.usefixtures("copies_keys")
def test_new_rows_follow_a_row_group_with_copied_keys(tmp_path):
    settings = settings_of(**{"hoodie.parquet.block.size": "1"})
    hf.write(typed_rows(range(ROWS)), tmp_path / "t", settings)
    table = hf.HudiTable.open(tmp_path / "t")
    (old,) = base_files(table.path)
    changed = newer(range(0, ROWS + 100, 3))
    table.upsert(changed, {"hoodie.parquet.block.size": "1"})
    new = base_files(table.path)[-1]
    assert all(same >= KEYS for same in kept_chunks(old, new))
    assert groups_of(new)[: len(groups_of(old))] == groups_of(old)
    assert sum(groups_of(new)) == ROWS + 34
    assert_sound(table, by_key(typed_rows(range(ROWS))) | by_key(changed))


@pytest.mark.usefixtures("copies_keys")
def test_keys_of_row_groups_with_deleted_rows_are_encoded_again(tmp_path):
    def flagged(rows: pa.Table, deleted: int) -> pa.Table:
        flags = [number < deleted for number in range(rows.num_rows)]
        return rows.append_column("_hoodie_is_deleted", pa.array(flags))

    hf.write(flagged(typed_rows(range(ROWS)), 0), tmp_path / "t", settings_of())
    table = hf.HudiTable.open(tmp_path / "t")
    (old,) = base_files(table.path)
    sizes = groups_of(old)
    table.upsert(flagged(newer(range(ROWS)), 5))
    new = base_files(table.path)[-1]
    assert groups_of(new) == [sizes[0] - 5, *sizes[1:]]
    copied = [chunk_bytes(new, group, "id") == chunk_bytes(old, group, "id") for group in range(len(sizes))]
    assert copied == [False] + [True] * (len(sizes) - 1)


@pytest.mark.slow("change log")
@pytest.mark.usefixtures("copies_keys")
@pytest.mark.parametrize(
    "more",
    [
        {"hoodie.table.cdc.enabled": "true"},
        {"hoodie.populate.meta.fields": "false"},
    ],
    ids=["change log", "no meta columns"],
)
def test_keys_are_encoded_again_where_all_columns_are_needed(tmp_path, more):
    hf.write(typed_rows(range(ROWS)), tmp_path / "t", settings_of(**more))
    table = hf.HudiTable.open(tmp_path / "t")
    changed = newer(range(0, ROWS, 3))
    table.upsert(changed, more)
    assert by_key(hf.HudiTable.open(table.path).to_arrow()) == by_key(typed_rows(range(ROWS))) | by_key(changed)
    assert table.services.validate().ok


@pytest.mark.slow
@pytest.mark.usefixtures("copies_keys")
def test_a_compaction_copies_the_keys(tmp_path):
    settings = settings_of(**{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    hf.write(typed_rows(range(ROWS)), tmp_path / "t", settings)
    table = hf.HudiTable.open(tmp_path / "t")
    (old,) = base_files(table.path)
    changed = newer(range(0, ROWS, 5))
    table.upsert(changed)
    table.services.compact()
    new = base_files(table.path)[-1]
    assert all(same >= KEYS for same in kept_chunks(old, new))
    assert_sound(table, by_key(typed_rows(range(ROWS))) | by_key(changed))


@pytest.mark.slow(but="date")
@pytest.mark.usefixtures("copies_keys")
@pytest.mark.parametrize(
    ("key", "copied"),
    [
        (["number"], {"number"}),
        (["day"], {"day"}),
        (["price"], set()),
        (["number", "day"], set()),
    ],
    ids=["integer", "date", "decimal", "two columns"],
)
def test_a_key_column_is_copied_if_the_key_is_its_text(tmp_path, key, copied, monkeypatch):
    monkeypatch.setattr(patched_file, "_LEAST_SHARE", 1000)

    def rows(ts: int) -> pa.Table:
        numbers = list(range(600))
        return pa.table(
            {
                "number": pa.array(numbers, pa.int32()),
                "day": pa.array(numbers, pa.int32()).cast(pa.date32()),
                "price": pa.array([Decimal(number) for number in numbers], pa.decimal128(9, 2)),
                "ts": pa.array([ts] * len(numbers), pa.int64()),
                "text": [f"{ts} {number}" for number in numbers],
            }
        )

    settings = {
        **settings_of(),
        "hoodie.datasource.write.recordkey.field": ",".join(key),
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    }
    hf.write(rows(1), tmp_path / "t", settings)
    table = hf.HudiTable.open(tmp_path / "t")
    (old,) = base_files(table.path)
    table.upsert(rows(2))
    new = base_files(table.path)[-1]
    assert pq.read_metadata(new).num_rows == 600
    for same in kept_chunks(old, new):
        assert {"_hoodie_record_key", "_hoodie_partition_path", *copied} <= same
    found = hf.HudiTable.open(table.path).to_arrow().select(rows(2).column_names)
    assert found.sort_by("number").equals(rows(2))
    assert table.services.validate().ok


@pytest.mark.slow
@pytest.mark.usefixtures("copies_keys")
def test_an_update_by_condition_copies_the_columns_that_it_does_not_set(table):
    (old,) = base_files(table.path)
    result = table.update(None, {"amount": 7.25})
    assert result.updates == ROWS
    new = base_files(table.path)[-1]
    metadata = pq.read_metadata(new)
    leaves = {metadata.schema.column(number).path for number in range(metadata.num_columns)}
    changed = {"amount", "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"}
    assert any("." in leaf for leaf in leaves)
    assert kept_chunks(old, new) == [leaves - changed] * metadata.num_row_groups
    rows = typed_rows(range(ROWS))
    place = rows.column_names.index("amount")
    sevens = pa.array([7.25] * ROWS)
    assert_sound(table, by_key(rows.set_column(place, "amount", sevens)))


def test_keys_of_small_files_are_encoded_again(table):
    (old,) = base_files(table.path)
    assert pq.read_metadata(old).row_group(0).total_byte_size < patched_file._LEAST_GROUP
    table.upsert(newer(range(ROWS)))
    assert pq.read_metadata(base_files(table.path)[-1]).num_row_groups < pq.read_metadata(old).num_row_groups


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["upsert", "delete"]),
        st.integers(0, 700),
        st.integers(1, 150),
        st.sampled_from([1, 3, 50]),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.slow
@pytest.mark.usefixtures("copies_keys")
@example_settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, block=st.sampled_from(["1", "20000", "125829120"]))
def test_copied_and_encoded_files_hold_the_same_rows(tmp_path_factory, steps, block):
    path = tmp_path_factory.mktemp("t")
    table_path = path / "t"
    settings = settings_of(**{"hoodie.parquet.max.file.size": "100000"})
    first = typed_rows(range(600))
    hf.write(first, table_path, settings)
    expected = by_key(first)
    for ts, (verb, start, count, step) in enumerate(steps, 2):
        numbers = range(start, start + count * step, step)
        table = hf.HudiTable.open(table_path)
        if verb == "upsert":
            rows = newer(numbers, ts)
            table.upsert(rows, {"hoodie.parquet.block.size": block})
            expected |= by_key(rows)
        else:
            keys = [f"k{number:05d}" for number in numbers]
            table.delete(pa.table({"id": keys}), {"hoodie.parquet.block.size": block})
            expected = {key: row for key, row in expected.items() if key not in set(keys)}
    assert by_key(hf.HudiTable.open(table_path).to_arrow()) == expected
    assert_metadata_true(table_path)


def test_row_groups_between_the_keys_are_not_read():
    keys = IncomingKeys.of(pa.array(["b", "m", "é"]), pa.array([0, 1, 2]).to_numpy())
    found = [keys.has_between(low.encode(), high.encode()) for low, high in pairwise("abclmnzéÿ")]
    assert found == [True, True, False, True, True, False, True, True]
