"""All slices of a file group: the newest is the one that queries see, and every file of a complete write is in one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_fast.storage.base import Storage
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.slices import latest_slices, past_slices
from hudi_fast.view.table_state import load_state
from tests.support.golden import Golden

TABLES = [
    "cow_v9_mixed",
    "cow_v9_overwrites",
    "cow_v9_archived",
    "cow_v9_cdc",
    "h015_mor",
    "mor_v6_compacted",
    "mor_v8_compacted",
    "mor_v9_cdc",
    "mor_v9_compacted",
    "mor_v9_delete_flag_and_rollback",
]


@pytest.mark.parametrize("name", TABLES)
def test_the_newest_slice_is_what_queries_see_and_no_file_is_left_out(
    name: str, golden: Callable[[str], Golden]
) -> None:
    state = load_state(Storage(golden(name).table))
    seen = 0
    for partition in state.view.lister.partitions():
        groups = past_slices(state.view, partition)
        latest = {one.file_id: one for one in latest_slices(state.view, partition)}
        for file_id, slices in groups.items():
            assert [one.begins for one in slices] == sorted({one.begins for one in slices}, reverse=True)
            if (partition, file_id) in state.view.replaced:
                assert file_id not in latest
                continue
            newest = latest.pop(file_id)
            assert newest.base_instant == slices[0].begins
            data = {one.name for one in slices[0].files() if not getattr(one, "is_cdc", False)}
            base = [] if newest.base_file is None else [newest.base_file.name]
            assert data == {*base, *(log.name for log in newest.log_files)}
        assert latest == {}
        parsed = [parse_base_file(one) or parse_log_file(one) for one in state.view.lister.files(partition)]
        complete = {
            one.name for one in parsed if one is not None and state.timeline.is_completed_or_archived(one.instant)
        }
        listed = [file.name for slices in groups.values() for one in slices for file in one.files()]
        assert len(listed) == len(set(listed))
        assert set(listed) == complete
        seen += len(listed)
    assert seen
