"""What planning looks at, in a table of many partitions: counts of metadata lookups, slices and storage calls.

The table is made by :mod:`benchmarks.scale.tables`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from pyarrow.compute import field

import hudi_fast as hf
from benchmarks.scale.tables import ROWS_PER_FILE, TableSize, add_logs, make_table, partition_name
from hudi_fast.metadata_table import state as lister_module
from hudi_fast.metadata_table.state import open_state
from hudi_fast.reading import scan as scan_module
from hudi_fast.reading.scan import ScanPlan, asked_rows, plan_scan, whole_scan
from hudi_fast.storage.base import Storage
from hudi_fast.view import slices as slices_module
from hudi_fast.view.listing import StorageLister
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.session import Call, TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.threads import ThreadBackend
from tests.support.instrumented_storage import RecordingStorage

SIZE = TableSize(groups=200, partitions=100, groups_per_commit=120)
LOGGED = TableSize(groups=12, partitions=6, table_type="MERGE_ON_READ")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scale") / "table"
    assert make_table(path, SIZE) == 2
    return path


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls by name; the metadata table counts as a large one."""
    found: Counter[str] = Counter()

    def count(module: Any, name: str, counts: Callable[[Any], bool] = lambda _: True) -> None:
        original = getattr(module, name)

        def counted(first: Any, *args: Any, **named: Any) -> Any:
            found[name] += counts(first)
            return original(first, *args, **named)

        monkeypatch.setattr(module, name, counted)

    for name in ("lookup", "scan"):
        count(lister_module, name)
    count(scan_module, "latest_slices")
    # The metadata table's own base files are parsed by the same function.
    count(slices_module, "parse_base_file", lambda entry: entry.name.endswith(".parquet"))
    monkeypatch.setattr(lister_module, "_WHOLE_BYTES", 0)
    return found


def planned(table: Path, filter_: pc.Expression | None, counts: Counter[str]) -> tuple[ScanPlan, list[str]]:
    """The plan, and the paths of data that were touched."""
    storage = RecordingStorage(table)
    state = open_state(storage)
    counts.clear()
    plan = plan_scan(state, filter=filter_)
    return plan, [call.path for call in storage.calls if call.path.startswith("p0") or not call.path]


@pytest.mark.slow
def test_a_made_table_has_its_files_in_folders_and_in_the_metadata_table(table: Path) -> None:
    lister, folders = open_state(Storage(table)).view.lister, StorageLister(Storage(table))
    assert lister.partitions() == folders.partitions()
    for name in (partition_name(0), partition_name(99)):
        stored = {one.path: one.size for one in folders.files(name) if one.name.endswith(".parquet")}
        assert {one.path: one.size for one in lister.files(name)} == stored
        assert len(stored) == 2
    assert hf.HudiTable.open(table).to_arrow(["id"]).num_rows == 200 * ROWS_PER_FILE


def test_a_made_table_may_have_log_files(tmp_path: Path) -> None:
    make_table(tmp_path, LOGGED)
    add_logs(tmp_path, LOGGED, [partition_name(3)])
    slices = plan_scan(open_state(Storage(tmp_path))).slices
    assert [one.partition for one in slices if one.log_files] == [partition_name(3)] * 2
    assert len(slices) == 12
    assert hf.HudiTable.open(tmp_path).to_arrow(["id"]).num_rows == 12 * ROWS_PER_FILE


def test_a_filter_on_a_partition_looks_at_the_files_of_that_partition_alone(table: Path, counts: Counter[str]) -> None:
    plan, touched = planned(table, field("part") == partition_name(42), counts)
    assert {one.partition for one in plan.slices} == {partition_name(42)}
    assert plan.partitions == 100
    assert counts == {"lookup": 2, "latest_slices": 1, "parse_base_file": 2}  # partitions, then the files of one
    assert touched == []


def test_files_of_several_partitions_are_read_together(table: Path, counts: Counter[str]) -> None:
    names = [partition_name(number) for number in range(0, 100, 5)]
    plan, touched = planned(table, field("part").isin(names), counts)
    assert sorted({one.partition for one in plan.slices}) == names
    assert counts == {"lookup": 2, "latest_slices": 20, "parse_base_file": 40}
    assert touched == []


def test_a_query_of_most_partitions_reads_the_listing_once(table: Path, counts: Counter[str]) -> None:
    plan, touched = planned(table, field("part") >= partition_name(30), counts)
    assert len(plan.slices) == 140
    assert counts == {"lookup": 1, "scan": 1, "latest_slices": 70, "parse_base_file": 140}
    assert touched == []
    plan, touched = planned(table, None, counts)
    assert len(plan.slices) == 200
    assert counts == {"lookup": 1, "scan": 1, "latest_slices": 100, "parse_base_file": 200}
    assert touched == []


def test_partition_statistics_leave_out_partitions_before_their_files_are_listed(
    table: Path, counts: Counter[str]
) -> None:
    plan, _ = planned(table, field("value") < 0, counts)
    assert plan.slices == ()
    assert counts["latest_slices"] == counts["parse_base_file"] == 0


def test_a_lazy_scan_lists_no_files_before_it_is_read(table: Path, counts: Counter[str]) -> None:
    scan = hf.HudiTable.open(table).scan(["id", "value"], field("value") >= 0)
    assert scan.schema.names == ["id", "value"]
    assert counts["lookup"] == counts["scan"] == counts["latest_slices"] == 0
    rows = scan.to_table(filter=field("part") == partition_name(7))
    assert rows.num_rows == 0 or set(rows.column_names) == {"id", "value"}
    assert counts["latest_slices"] == 1


def test_the_schema_of_a_query_is_that_of_its_plan(table: Path) -> None:
    state = open_state(Storage(table))
    asked = ["value", "_hoodie_record_key"], field("ts") == 1
    whole = whole_scan(state)
    assert asked_rows(whole, *asked).output == plan_scan(state, *asked).scan.output
    with pytest.raises(hf.ConfigError, match="no column 'nope'"):
        asked_rows(whole, ["nope"], None)


def test_the_draft_of_a_write_looks_at_a_few_files(table: Path, counts: Counter[str]) -> None:
    storage = RecordingStorage(table)
    session = TableSession(Call(storage, Settings.for_write(SIZE.options()), ThreadBackend(1)))
    state = session.state
    counts.clear()
    draft_plan(state, session.settings.write, hf.HudiTable.open(table).schema)
    assert counts["scan"] == 0
    assert counts["lookup"] == 3  # the partitions, and two of them: three files tell whether they are buckets
    assert counts["parse_base_file"] == 4
    bodies = Counter(call.path for call in storage.calls if call.name == "read_bytes" and "/timeline/" in call.path)
    assert max(count for path, count in bodies.items() if path.startswith(".hoodie/timeline/")) == 1
