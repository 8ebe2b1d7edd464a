"""Checks of a write against what other writers committed."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitConflictError, ConfigError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.conflicts import check_mode, pin, require_no_other_commit
from tests.support.small_tables import options, plain_rows
from tests.writing.plans import INSTANT, drafted

OWN = Instant(INSTANT, "commit", State.INFLIGHT, None)
SHARED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.clean.failed.writes.policy": "LAZY",
}
NON_BLOCKING = {**SHARED, "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
BUCKET = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}


def test_a_write_alone_on_the_table_has_no_conflict(tmp_path: Path) -> None:
    hf.write(plain_rows([0]), tmp_path, options())
    state = load_state(Storage(tmp_path))
    require_no_other_commit(OWN, state)
    other = hf.write(plain_rows([1]), tmp_path, options())
    with pytest.raises(CommitConflictError, match=INSTANT) as raised:
        require_no_other_commit(OWN, state)
    assert raised.value.other == other.instant


def test_compactions_change_no_rows(tmp_path: Path) -> None:
    settings = {**options(), "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    for ts in (1, 2):
        hf.write(plain_rows([0], ts=ts), tmp_path, settings)
    state = load_state(Storage(tmp_path))
    hf.HudiTable.open(tmp_path).services.compact(options={"hoodie.compact.inline.max.delta.commits": "1"})
    require_no_other_commit(OWN, state)


def test_columns_are_pinned_where_writers_may_change_them(tmp_path: Path) -> None:
    hf.write(plain_rows([0]), tmp_path, options())
    state = load_state(Storage(tmp_path))
    assert pin(state, WriteOptions.from_options(options())).columns is None
    merges = {"hoodie.write.concurrency.schema.conflict.resolution.enable": "true"}
    pinned = pin(state, WriteOptions.from_options({**options(), **SHARED, **merges}))
    assert pinned.columns is not None
    assert pinned.columns.names == plain_rows([0]).schema.names


def test_non_blocking_writes_need_simple_buckets_and_version_8(tmp_path: Path) -> None:
    def check(folder: str, **more: str) -> None:
        settings = {**options(), **more}
        hf.write(plain_rows([0]), tmp_path / folder, settings)
        plan, _ = drafted(tmp_path / folder, plain_rows([0]), settings)
        check_mode(plan, WriteOptions.from_options({**settings, **NON_BLOCKING}))

    check("buckets", **BUCKET)
    with pytest.raises(ConfigError, match="simple bucket index"):
        check("plain")
    with pytest.raises(ConfigError, match="table version 8"):
        check("old", **BUCKET, **{"hoodie.write.table.version": "6"})
