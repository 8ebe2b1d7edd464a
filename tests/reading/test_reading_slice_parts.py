"""A merged slice in two parts: the base file's rows without the hidden ones, and what its log brings."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.reading.scan import ScanQuery, plan_scan
from hudi_fast.reading.slice_reader import hidden_rows, log_rows_of_slice, read_slice
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.support.golden import golden_names
from tests.support.mor_tables import mor_options
from tests.support.rows import assert_same_rows
from tests.support.small_tables import plain_rows

MODES = ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING")


def planned(path, columns=None, **query):
    return plan_scan(load_state(Storage(path)), columns, query=ScanQuery(**query))


def rows_of_slice(scan, one):
    return pa.Table.from_batches(read_slice(scan, one), scan.output)


def in_two_parts(scan, one):
    hidden, beaten = hidden_rows(scan, one)
    assert (np.diff(hidden) > 0).all()
    assert (np.diff(beaten) > 0).all()
    stored = rows_of_slice(replace(scan, merge=None), one)
    kept = np.ones(stored.num_rows, dtype=np.bool_)
    kept[hidden] = False
    brought = [
        batch if numbers is None else batch.filter(pa.array(np.isin(numbers, beaten, invert=True)))
        for batch, numbers in log_rows_of_slice(scan, one)
    ]
    logged = pa.Table.from_batches(brought, scan.output)
    assert_same_rows(logged, rows_of_slice(replace(scan, base_rows=False), one), ignore=())
    return pa.concat_tables([stored.filter(pa.array(kept)), logged])


@pytest.mark.slow("mor_v6_DefaultHoodieRecordPayload-False")
@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("name", [*golden_names("mor_"), *golden_names("h015_mor")])
def test_the_parts_of_tables_of_real_hudi_are_the_merged_rows(golden, name, positions):
    plan = planned(golden(name).table, use_positions=positions)
    for one in plan.slices:
        assert_same_rows(in_two_parts(plan.scan, one), rows_of_slice(plan.scan, one), ignore=())


def test_columns_that_merging_needs_need_not_be_asked_for(golden):
    plan = planned(golden("mor_v9_multi_order_logs").table, ["_hoodie_commit_seqno"])
    for one in plan.slices:
        assert_same_rows(in_two_parts(plan.scan, one), rows_of_slice(plan.scan, one), ignore=())


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_hidden_rows_are_those_that_the_log_replaces_or_deletes(tmp_path, mode):
    settings = {"hoodie.write.record.merge.mode": mode}
    hf.write(plain_rows(range(8), ts=5, partitions=1), tmp_path / "t", mor_options(settings))
    hf.write(plain_rows([2, 5], ts=6, partitions=1), tmp_path / "t", mor_options())
    hf.write(plain_rows([3], ts=1, partitions=1), tmp_path / "t", mor_options())
    hf.write(plain_rows([6], ts=7, partitions=1), tmp_path / "t", mor_options(operation="delete"))
    plan = planned(tmp_path / "t", ["id"])
    (one,) = plan.slices
    stored = rows_of_slice(replace(plan.scan, merge=None), one)["id"]
    brought = rows_of_slice(replace(plan.scan, base_rows=False), one)["id"]
    older = ["k00003"] if mode == "COMMIT_TIME_ORDERING" else []
    assert sorted(pc.take(stored, hidden_rows(plan.scan, one).stored).to_pylist()) == sorted(
        ["k00002", "k00005", "k00006", *older]
    )
    assert sorted(brought.to_pylist()) == sorted(["k00002", "k00005", *older])
    logged = pa.Table.from_batches([batch for batch, _ in log_rows_of_slice(plan.scan, one)])["id"]
    numbers = np.concatenate([numbers for _, numbers in log_rows_of_slice(plan.scan, one)])
    beaten = logged.filter(pa.array(np.isin(numbers, hidden_rows(plan.scan, one).logged))).to_pylist()
    assert beaten == ([] if older else ["k00003"])


def test_slices_without_log_files_hide_and_bring_nothing(tmp_path):
    hf.write(plain_rows(range(4)), tmp_path / "t", mor_options())
    plan = planned(tmp_path / "t")
    for one in plan.slices:
        assert not any(map(len, hidden_rows(plan.scan, one)))
        assert not rows_of_slice(replace(plan.scan, base_rows=False), one).num_rows


def test_rows_of_a_log_that_is_not_merged_hide_nothing(tmp_path):
    hf.write(plain_rows(range(4), partitions=1), tmp_path / "t", mor_options())
    hf.write(plain_rows([1, 3], ts=2, partitions=1), tmp_path / "t", mor_options())
    plan = planned(tmp_path / "t", ["id"], unmerged=True)
    (one,) = plan.slices
    assert not any(map(len, hidden_rows(plan.scan, one)))
    brought = rows_of_slice(replace(plan.scan, base_rows=False), one)
    assert sorted(brought["id"].to_pylist()) == ["k00001", "k00003"]
