"""Partition TTL: which partitions expire, and what deleting them leaves.

Modules: hudi_fast.services.expiry, hudi_fast.config.service_options.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.errors import ConfigError, HudiWarning, UnsupportedFeatureError
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state, read_commit
from tests.support.mor_tables import mor_options
from tests.support.old_tables import DAYS, write_days_ago
from tests.support.small_tables import assert_tidy, listing, options, plain_rows, table_rows

TTL = "hoodie.partition.ttl."
CREATION = {f"{TTL}management.strategy.type": "KEEP_BY_CREATION_TIME"}
SELECTED, LIMIT = f"{TTL}strategy.partition.selected", f"{TTL}strategy.max.delete.partitions"
FAR = 200
"""Beyond 49 days milliseconds do not fit 32 bits."""


def old_table(path: Path, settings: dict[str, Any] | None = None) -> hf.HudiTable:
    """Partition p0 is FAR days old, p1 too but changed 10 days ago, p2 10 days, p3 new."""
    settings = options() if settings is None else settings
    write_days_ago(plain_rows([0, 1], partitions=4), path, settings, FAR)
    write_days_ago(plain_rows([1, 2], ts=2, partitions=4), path, settings, 10)
    hf.write(plain_rows([3], partitions=4), path, settings)
    return hf.HudiTable.open(path)


def partitions(path: Path) -> list[str]:
    return sorted({part for part, *_ in table_rows(path).values()})


def test_partitions_expire_by_their_newest_file_slice(tmp_path: Path) -> None:
    services = old_table(tmp_path).services
    assert services.plan_expire_partitions({DAYS: "30"}).partitions == ("p0",)
    assert services.plan_expire_partitions({DAYS: "9"}).partitions == ("p0", "p1", "p2")
    assert services.plan_expire_partitions({DAYS: str(FAR + 1)}).partitions == ()
    done = services.expire_partitions({DAYS: "30"})
    assert done.partitions == ("p0",)
    assert partitions(tmp_path) == ["p1", "p2", "p3"]
    assert_tidy(tmp_path)


def test_partitions_expire_by_creation(tmp_path: Path) -> None:
    services = old_table(tmp_path).services
    assert services.expire_partitions({DAYS: "30", **CREATION}).partitions == ("p0", "p1")
    by_class = {f"{TTL}strategy.class": "org.apache.hudi.table.action.ttl.strategy.KeepByCreationTimeStrategy"}
    assert services.plan_expire_partitions({DAYS: "9", **by_class}).partitions == ("p2",)
    assert partitions(tmp_path) == ["p2", "p3"]


def test_the_commit_is_a_replace_commit_without_files(tmp_path: Path) -> None:
    table = old_table(tmp_path)
    rows = table_rows(tmp_path)
    done = table.services.expire_partitions({DAYS: "30"})
    state = load_state(Storage(tmp_path))
    found = state.timeline.find(done.instant, "replacecommit")
    assert found is not None
    commit = read_commit(state.storage, state.config, found)
    assert commit.operation_type == "DELETE_PARTITION"
    assert list(commit.write_stats()) == []
    assert list(commit.partition_to_replace_file_ids or {}) == ["p0"]
    assert table.to_arrow().num_rows == len(rows) - 1
    earlier = load_state(Storage(tmp_path)).timeline.writes()[-2].requested
    assert table.to_arrow(as_of=earlier).num_rows == len(rows)


def test_nothing_is_written_if_nothing_has_expired(tmp_path: Path) -> None:
    services = old_table(tmp_path).services
    before = listing(tmp_path)
    done = services.expire_partitions({DAYS: str(FAR + 1)})
    assert (done.instant, done.partitions) == ("", ())
    assert listing(tmp_path) == before
    services.expire_partitions({DAYS: "30"})
    assert services.expire_partitions({DAYS: "30"}).instant == ""


def test_only_selected_partitions_and_only_so_many_are_deleted_the_oldest_first(tmp_path: Path) -> None:
    services = old_table(tmp_path).services
    assert services.plan_expire_partitions({DAYS: "9", SELECTED: "p1,p2,none"}).partitions == ("p1", "p2")
    assert services.plan_expire_partitions({DAYS: "9", LIMIT: "0"}).partitions == ()
    assert services.expire_partitions({DAYS: "9", LIMIT: "1"}).partitions == ("p0",)


def test_paths_are_not_patterns(tmp_path: Path) -> None:
    rows = plain_rows([0, 1, 2]).set_column(1, "part", [["%2A", "a,b", "x"]])
    write_days_ago(rows.slice(0, 2), tmp_path, options(), FAR)
    hf.write(rows.slice(2), tmp_path, options())
    assert hf.HudiTable.open(tmp_path).services.expire_partitions({DAYS: "30"}).partitions == ("%2A", "a,b")
    assert partitions(tmp_path) == ["x"]


def test_a_pending_service_keeps_its_partition(tmp_path: Path) -> None:
    settings = {**mor_options(), "hoodie.compact.inline": "false"}
    write_days_ago(plain_rows([0, 1]), tmp_path, settings, FAR)
    hf.write(plain_rows([0], ts=2), tmp_path, settings)  # a log file
    table = hf.HudiTable.open(tmp_path)
    planned = table.services.schedule_compact({"hoodie.compact.inline.max.delta.commits": "1"})
    assert planned is not None
    since = table.history()["instant"][0].as_py()
    found = table.services.plan_expire_partitions({DAYS: "30", **CREATION}).to_arrow().to_pylist()
    assert [(one["partition"], one["since"], one["blocked_by"]) for one in found] == [
        ("p0", since, f"the pending compaction {planned.instant}"),
        ("p1", since, ""),
    ]
    assert table.services.expire_partitions({DAYS: "30"}).partitions == ("p1",)
    assert partitions(tmp_path) == ["p0"]
    table.services.compact()  # it begins a file slice
    assert table.services.expire_partitions({DAYS: "30"}).partitions == ()
    assert_tidy(tmp_path)


def test_log_files_do_not_prolong_the_life_of_a_partition(tmp_path: Path) -> None:
    settings = {**mor_options(), "hoodie.compact.inline": "false"}
    write_days_ago(plain_rows([0, 1]), tmp_path, settings, FAR)
    hf.write(plain_rows([0], ts=2), tmp_path, settings)
    assert hf.HudiTable.open(tmp_path).services.expire_partitions({DAYS: "30"}).partitions == ("p0", "p1")


@pytest.mark.slow
def test_expired_partitions_are_deleted_after_a_write(tmp_path: Path) -> None:
    settings = {**options(), "hoodie.metadata.enable": "true", "_source": "batch 7"}
    old_table(tmp_path, options())
    inline = {f"{TTL}inline": "true", DAYS: "30"}
    done = hf.write(plain_rows([7], partitions=4), tmp_path, {**settings, **inline})
    assert partitions(tmp_path) == ["p1", "p2", "p3"]
    state = load_state(Storage(tmp_path))
    written, deleted = state.timeline.writes()[-2:]
    assert (written.requested, deleted.action) == (done.instant, "replacecommit")
    assert "_source" not in read_commit(state.storage, state.config, deleted).extra_metadata
    assert hf.HudiTable.open(tmp_path).services.validate().differences.num_rows == 0
    hf.write(plain_rows([0], partitions=4), tmp_path, {**settings, **inline})  # the partition is new again
    assert partitions(tmp_path) == ["p0", "p1", "p2", "p3"]


def test_a_table_without_partitions_never_expires(tmp_path: Path) -> None:
    write_days_ago(plain_rows([0]), tmp_path, options(partition=None), FAR)
    assert hf.HudiTable.open(tmp_path).services.expire_partitions({DAYS: "1"}).instant == ""


def test_a_missing_number_of_days_is_an_error_or_a_warning_after_a_write(tmp_path: Path) -> None:
    services = old_table(tmp_path).services
    with pytest.raises(ConfigError, match=r"days\.retain=-1: no partition would ever expire"):
        services.expire_partitions()
    with pytest.raises(ConfigError, match=r"days\.retain='soon' is not an integer"):
        services.expire_partitions({DAYS: "soon"})
    with pytest.raises(UnsupportedFeatureError, match=r"strategy\.class=com\.acme\.Mine is not supported"):
        services.expire_partitions({DAYS: "3", f"{TTL}strategy.class": "com.acme.Mine"})
    with pytest.raises(ConfigError, match=r"KEEP_BY_EVENT_TIME' is not valid"):
        services.expire_partitions({DAYS: "3", f"{TTL}management.strategy.type": "KEEP_BY_EVENT_TIME"})
    with pytest.warns(HudiWarning, match="deletes nothing without"):
        hf.write(plain_rows([0]), tmp_path, {**options(), f"{TTL}inline": "true"})
