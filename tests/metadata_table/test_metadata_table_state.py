"""The state of a table finds files through the metadata table, unless it is told not to or cannot."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from hudi_fast.errors import HudiWarning, TableNotFoundError
from hudi_fast.metadata_table.state import MetadataLister, metadata_of, open_state
from hudi_fast.reading.scan import plan_scan, scan_table
from hudi_fast.reading.time_travel import state_for_query
from hudi_fast.storage.base import Storage
from hudi_fast.view.listing import StorageLister
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state
from tests.support.golden import Golden

Unzip = Callable[[str], Golden]


def test_the_metadata_table_is_used_when_there_is_one(golden: Unzip) -> None:
    storage = Storage(golden("cow_v9_mixed").table)
    state = open_state(storage)
    assert isinstance(state.view.lister, MetadataLister)
    assert metadata_of(state) is metadata_of(state.view) is state.view.lister.table


def test_a_caller_may_do_without(golden: Unzip) -> None:
    storage = Storage(golden("cow_v9_mixed").table)
    for state in (open_state(storage, use_metadata=False), state_for_query(storage, None, use_metadata=False)):
        assert isinstance(state.view.lister, StorageLister)
        assert metadata_of(state) is None


@pytest.mark.parametrize("name", ["cow_v9_clustered", "mor_v9_compacted", "h015_cow_archived", "cow_v9_restored"])
def test_slices_are_the_same_either_way_at_every_moment(name: str, golden: Unzip) -> None:
    storage = Storage(golden(name).table)
    moments = [None, *(one.requested for one in load_state(storage).timeline.writes())]
    for moment in moments:
        through, listed = open_state(storage, moment), load_state(storage, moment)
        for partition in listed.view.lister.partitions():
            assert latest_slices(through.view, partition) == latest_slices(listed.view, partition)


def test_what_cannot_be_trusted_is_not_used(golden: Unzip) -> None:
    table = golden("mor_v9_mixed")
    shutil.rmtree(table.table / ".hoodie/metadata")
    with pytest.warns(HudiWarning, match="is not used, folders are listed"):
        state = open_state(Storage(table.table))
    assert metadata_of(state) is None
    assert scan_table(plan_scan(state)).num_rows == table.expected["rows"]


def test_no_table_is_an_error(tmp_path) -> None:
    with pytest.raises(TableNotFoundError):
        open_state(Storage(tmp_path))
