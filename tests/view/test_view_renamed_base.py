"""A base file that is older than an ALTER, with current names and types."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.base_files import RenamedBase, open_base
from hudi_fast.view.file_names import BaseFile
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import options, plain_rows


@pytest.fixture
def base(tmp_path: Path) -> tuple[Storage, BaseFile]:
    """The base file of a table with two rows; afterwards ``text`` and ``s.a`` are renamed."""
    rows = plain_rows([0, 4], text="t").append_column("s", pa.array([{"a": 7}, {"a": 8}]))
    hf.write(rows, tmp_path, options())
    hf.HudiTable.open(tmp_path).alter(hf.RenameColumn("text", "note"), hf.RenameColumn("s.a", "b"))
    state = load_state(Storage(tmp_path))
    (slice_,) = latest_slices(state.view, "p0")
    assert slice_.base_file is not None
    return state.storage, slice_.base_file


def test_columns_are_read_by_their_current_names(base: tuple[Storage, BaseFile]) -> None:
    with open_base(*base) as reader:
        assert isinstance(reader, RenamedBase)
        assert "note" in reader.schema.names
        assert "text" not in reader.schema.names
        expected = [{"s": {"b": 7}, "note": "t0"}, {"s": {"b": 8}, "note": "t4"}]
        assert reader.read(["s", "note"]).to_pylist() == expected
        batches = list(reader.batches(["s", "note"], batch_rows=1))
        assert [row for batch in batches for row in batch.to_pylist()] == expected
        assert (reader.num_rows, reader.row_group_rows()) == (2, [2])


def test_columns_that_are_used_as_stored_are_known(base: tuple[Storage, BaseFile]) -> None:
    with open_base(*base) as reader:
        assert isinstance(reader, RenamedBase)
        assert {"note", "id", "part"} <= reader.only_renamed
        assert "s" not in reader.only_renamed
        assert reader.only_renamed - reader.as_stored == {"note"}
        assert reader.location[1] == base[1].path
