"""Whatever the index, the rows found are those whose keys are equal."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import hudi_fast as hf
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.index.tagging import IncomingKeys, IndexSettings, file_keys, match_slice, untagged_rows
from hudi_fast.keys.key_generator import KeyConfig
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import load_state
from tests.support.examples import examples
from tests.support.small_tables import options, plain_rows

KINDS = [
    IndexSettings(kind, prune)
    for kind in ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM")
    for prune in (True, False)
]
TEXTS = st.text(st.sampled_from("ab0é鍵😀\uffee"), min_size=1, max_size=4)


def only_slice(path: Path) -> tuple[Storage, FileSlice]:
    storage = Storage(path)
    (found,) = latest_slices(load_state(storage).view, "p0")
    return storage, found


@pytest.mark.slow
@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(st.lists(TEXTS, min_size=1, max_size=12, unique=True), st.lists(TEXTS, max_size=12, unique=True))
def test_every_index_finds_exactly_the_equal_keys(stored: list[str], wanted: list[str]) -> None:
    folder = tempfile.mkdtemp()
    rows = plain_rows([0] * len(stored)).set_column(0, "id", pa.array(stored))
    hf.write(rows, folder, options(operation="bulk_insert"))
    storage, slice_ = only_slice(Path(folder))
    numbers = np.arange(len(wanted), dtype=np.int64) * 3 + 1
    keys = IncomingKeys.of(pa.array(wanted, pa.string()), numbers)
    expected = [(row, 3 * wanted.index(key) + 1) for row, key in enumerate(stored) if key in wanted]
    for settings_ in KINDS:
        match = match_slice(storage, slice_, keys, settings_, None)
        found = [] if match is None else list(zip(match.base_rows.tolist(), match.incoming_rows.tolist(), strict=True))
        assert found == expected, settings_
    shutil.rmtree(folder)


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: f"{one.kind}-{one.prune_by_range}")
def test_each_key_of_a_file_is_found_by_itself_the_smallest_and_the_largest_too(
    kind: IndexSettings, tmp_path: Path
) -> None:
    hf.write(plain_rows([0, 2, 4]), tmp_path, options())
    storage, slice_ = only_slice(tmp_path)
    for row, key in enumerate(("k00000", "k00002", "k00004")):
        match = match_slice(storage, slice_, IncomingKeys.of(pa.array([key]), np.array([7])), kind, None)
        assert match is not None, key
        assert (match.base_rows.tolist(), match.incoming_rows.tolist()) == ([row], [7])
    for key in ("k", "k00001", "k00005"):
        assert match_slice(storage, slice_, IncomingKeys.of(pa.array([key]), np.array([7])), kind, None) is None


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: f"{one.kind}-{one.prune_by_range}")
def test_rows_are_counted_across_row_groups_that_are_left_out(kind: IndexSettings, tmp_path: Path) -> None:
    hf.write(plain_rows(range(0, 24, 2)), tmp_path, options())
    storage, slice_ = only_slice(tmp_path)
    assert slice_.base_file is not None
    path = tmp_path / slice_.base_file.path
    pq.write_table(pq.read_table(path, partitioning=None), path, row_group_size=2)
    for wanted in ([0, 11], [1, 2, 7, 8, 11], [4], [0, 3, 4, 10], [2, 9]):
        keys = IncomingKeys.of(pa.array([f"k{2 * row:05d}" for row in wanted]), np.arange(len(wanted)))
        match = match_slice(storage, slice_, keys, kind, None)
        assert match is not None
        assert match.base_rows.tolist() == wanted
        assert match.incoming_rows.tolist() == list(range(len(wanted)))


def test_keys_are_computed_where_a_table_stores_none(tmp_path: Path) -> None:
    settings_ = {**options(), "hoodie.populate.meta.fields": "false"}
    hf.write(plain_rows([0, 2, 4]), tmp_path, settings_)
    storage, slice_ = only_slice(tmp_path)
    keys = IncomingKeys.of(pa.array(["k00004", "k00009"]), np.array([5, 6]))
    config = KeyConfig("SIMPLE", ("id",), ("part",))
    for kind in KINDS:
        match = match_slice(storage, slice_, keys, kind, config)
        assert match is not None
        assert (match.base_rows.tolist(), match.incoming_rows.tolist()) == ([2], [5])


def test_a_file_without_keys_in_a_table_that_stores_them_is_corrupt(tmp_path: Path) -> None:
    hf.write(plain_rows([0, 2]), tmp_path, options())
    storage, slice_ = only_slice(tmp_path)
    assert slice_.base_file is not None
    path = tmp_path / slice_.base_file.path
    rows = pq.read_table(path, partitioning=None)
    nulls = rows.set_column(2, "_hoodie_record_key", pa.nulls(2, pa.string()))
    for broken, text in ((rows.drop_columns(["_hoodie_record_key"]), "no column"), (nulls, "2 rows without")):
        pq.write_table(broken, path)
        with open_base_file(storage, slice_.base_file.path) as reader:
            with pytest.raises(hf.CorruptTableError, match=text) as caught:
                list(file_keys(reader, None))
        assert caught.value.path == slice_.base_file.path


def test_a_broken_filter_is_said_to_be_broken(tmp_path: Path) -> None:
    hf.write(plain_rows([0, 2]), tmp_path, options())
    storage, slice_ = only_slice(tmp_path)
    assert slice_.base_file is not None
    path = tmp_path / slice_.base_file.path
    rows = pq.read_table(path, partitioning=None)
    with pq.ParquetWriter(path, rows.schema) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(
            {"org.apache.hudi.bloomfilter": "AAAA", "hoodie_bloom_filter_type_code": "DYNAMIC_V0"}
        )
    keys = IncomingKeys.of(pa.array(["k00000"]), np.array([0]))
    with pytest.raises(hf.CorruptTableError, match="bloom"):
        match_slice(storage, slice_, keys, IndexSettings("BLOOM"), None)
    assert match_slice(storage, slice_, keys, IndexSettings("SIMPLE"), None) is not None


def test_nothing_incoming_matches_nothing(tmp_path: Path) -> None:
    hf.write(plain_rows([0, 2]), tmp_path, options())
    storage, slice_ = only_slice(tmp_path)
    nothing = IncomingKeys.of(pa.array([], pa.string()), np.zeros(0, np.int64))
    assert match_slice(storage, slice_, nothing, IndexSettings(), None) is None


def test_rows_that_no_match_names_are_left_over(tmp_path: Path) -> None:
    hf.write(plain_rows([0, 2]), tmp_path, options())
    storage, slice_ = only_slice(tmp_path)
    rows = np.array([1, 4, 6])
    keys = IncomingKeys.of(pa.array(["k00002", "x", "y"]), rows)
    match = match_slice(storage, slice_, keys, IndexSettings(), None)
    assert match is not None
    assert untagged_rows(rows, [match], 9).tolist() == [4, 6]
    assert untagged_rows(rows, [], 9).tolist() == [1, 4, 6]


@pytest.mark.slow
def test_rows_are_counted_across_the_batches_of_a_long_file(tmp_path: Path) -> None:
    count = 300_000
    rows = pa.table(
        {
            "id": pa.array(np.arange(count)).cast(pa.string()),
            "part": pa.array(["p0"] * count),
            "ts": pa.array(np.zeros(count, np.int64)),
        }
    )
    hf.write(rows, tmp_path, options(operation="bulk_insert"))
    storage, slice_ = only_slice(tmp_path)
    wanted = np.array([5, 262_143, 262_144, 299_999])
    keys = IncomingKeys.of(pa.array([str(number) for number in wanted]), np.arange(4))
    match = match_slice(storage, slice_, keys, IndexSettings(), None)
    assert match is not None
    assert (match.base_rows.tolist(), match.incoming_rows.tolist()) == (wanted.tolist(), [0, 1, 2, 3])
