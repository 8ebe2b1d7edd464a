"""Clusterings that one side plans and the other carries out, and tables that both go on with afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_fast.storage.base import Storage
from hudi_fast.timeline.service_plans import ClusteringPlan
from hudi_fast.view.pending import pending_clusterings
from hudi_fast.view.table_state import load_state
from tests.interop.mor_sides import MorSides, mor_options
from tests.interop.sides import after_delete, after_upsert, trip_options, trips
from tests.support.rows import assert_same_rows

SORT = "hoodie.clustering.plan.strategy.sort.columns"
CASES = [
    ("hudi_12", 9, "COPY_ON_WRITE"),
    pytest.param("hudi_12", 8, "MERGE_ON_READ", marks=pytest.mark.long),
    pytest.param("hudi_12", 6, "COPY_ON_WRITE", marks=pytest.mark.long),
    pytest.param("hudi_015", 6, "MERGE_ON_READ", marks=pytest.mark.long),
]


def sides_of(hudi: Any, path: Path, version: int, kind: str, **more: Any) -> MorSides:
    chosen = mor_options(version, **more) if kind == "MERGE_ON_READ" else trip_options(version, **more)
    return MorSides(hudi, path, {**chosen, "hoodie.parquet.small.file.limit": 0}, plainly=not more)


def hudi_clusters(sides: MorSides, step: str, order: str = "") -> None:
    """Hudi's procedure: ``schedule``, ``execute``, or ``scheduleAndExecute``."""
    text = "hoodie.metadata.enable=false" if sides.plainly else "hoodie.metadata.enable=true"
    if not sides.hudi.version.startswith("0."):
        text += ",hoodie.write.auto.upgrade=false"
    by = f", order => '{order}'" if order else ""
    sides.hudi.sql(f"CALL run_clustering(path => '{sides.path}', op => '{step}', options => '{text}'{by})")


def we_cluster(sides: MorSides, **more: Any) -> Any:
    plain = {"hoodie.metadata.enable": "false"} if sides.plainly else {}
    return sides.table.services.cluster({**plain, **more.pop("given", {})}, **more)


def file_groups(sides: MorSides) -> set[str]:
    return set(sides.table.files()["file_id"].to_pylist())


def essence(plan: ClusteringPlan) -> list[Any]:
    """A plan without what is not decided: the order of slices of one size, and whether paths have a scheme."""
    groups = [
        (sorted(map(repr, group.slices)), group.output_groups, group.metrics, group.extra_metadata)
        for group in plan.groups
    ]
    text = repr([sorted(groups, key=repr), plan.strategy_class, plan.strategy_params, plan.preserve_meta_fields])
    return [text.replace("file://", "").replace("file:", ""), plan.extra_metadata, plan.missing_partitions]


def both_write(sides: MorSides, rows: pa.Table, ts: int) -> pa.Table:
    """New rows and changed ones of either side; what the table holds then."""
    for write, first in ((sides.we_write, 10 * ts), (sides.hudi_writes, 10 * ts + 1)):
        new = trips(range(first, first + 12), ts=ts, note=f"of {ts}")
        write(new)
        rows, ts = after_upsert(rows, new), ts + 1
    return rows


@pytest.mark.smoke("hudi_12-9-COPY_ON_WRITE")
@pytest.mark.parametrize(("peer", "version", "kind"), CASES)
def test_either_side_carries_out_what_the_other_planned(
    peer: str, version: int, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    sides = sides_of(request.getfixturevalue(peer), tmp_path / "trips", version, kind)
    rows = trips(range(40))
    sides.we_write(rows, "bulk_insert")
    rows = both_write(sides, rows, 4)
    planned = sides.table.services.schedule_cluster({SORT: "seats,id"})
    before = file_groups(sides)
    assert planned.file_groups == len(before)
    sides.agree(rows)
    hudi_clusters(sides, "execute")
    assert sides.operations().count("CLUSTER") == 1
    assert file_groups(sides).isdisjoint(before)
    sides.agree(rows)
    for city in range(3):
        mine = sides.table.to_arrow(filter=pc.field("city") == f"city{city}")
        assert mine["seats"].to_pylist() == sorted(mine["seats"].to_pylist())
    rows = both_write(sides, rows, 8)
    ours = sides.table.services.plan_cluster({SORT: "id"}).plan
    hudi_clusters(sides, "schedule", "id")
    state = load_state(Storage(sides.path))
    ((_, theirs),) = pending_clusterings(state.storage, state.config, state.timeline)
    assert essence(theirs) == essence(ours)
    sides.agree(rows)
    before = file_groups(sides)
    done = we_cluster(sides, pending_only=True)
    assert done.file_groups == len(before)
    assert file_groups(sides).isdisjoint(before)
    assert sides.operations().count("CLUSTER") == 2
    sides.agree(rows)
    gone = trips(range(5, 20))
    sides.hudi_writes(gone, "delete")
    rows = both_write(sides, after_delete(rows, gone), 20)
    sides.agree(rows)


@pytest.mark.long
def test_indexes_know_where_clustered_rows_are(hudi_12: Any, tmp_path: Path) -> None:
    index = {
        "hoodie__metadata__enable": True,
        "hoodie__metadata__global__record__level__index__enable": True,
        "hoodie__metadata__index__column__stats__enable": True,
        "hoodie__index__type": "GLOBAL_RECORD_LEVEL_INDEX",
    }
    sides = sides_of(hudi_12, tmp_path / "trips", 9, "MERGE_ON_READ", **index)
    rows = trips(range(40))
    sides.we_write(rows, "bulk_insert")
    new = trips(range(30, 60), ts=2)
    sides.we_write(new, "upsert")
    rows = after_upsert(rows, new)
    assert we_cluster(sides, given={**sides.options, SORT: "fare"}).rows == 60
    assert sides.table.services.validate().differences.to_pylist() == []
    sides.agree(rows)
    skipping = {"hoodie.enable.data.skipping": "true", "hoodie.metadata.enable": "true"}
    found = sides.hudi.read(sides.path, skipping, where="fare < 20")
    assert sorted(found["id"].to_pylist()) == sorted(rows.filter(pc.field("fare") < 20)["id"].to_pylist())
    new = trips(range(20, 70), ts=5, note="after")
    sides.hudi_writes(new)
    rows = after_upsert(rows, new)
    sides.agree(rows)
    assert sides.table.services.validate().differences.to_pylist() == []
    hudi_clusters(sides, "scheduleAndExecute", "id")
    new = trips(range(65, 75), ts=6, note="after that")
    sides.we_write(new)
    sides.agree(after_upsert(rows, new))
    assert sides.table.services.validate().differences.to_pylist() == []


def test_an_incremental_query_of_hudi_does_not_return_clustered_rows_again(hudi_12: Any, tmp_path: Path) -> None:
    sides = sides_of(hudi_12, tmp_path / "trips", 9, "COPY_ON_WRITE")
    rows = trips(range(30))
    sides.we_write(rows, "bulk_insert")
    sides.we_write(trips(range(30, 40), ts=2), "bulk_insert")
    begin = max(sides.table.history()["completion"].to_pylist())
    assert we_cluster(sides).rows == 40
    new = trips(range(50, 55), ts=3)
    sides.we_write(new)
    query = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
    found = sides.hudi.read(sides.path, query)
    assert_same_rows(found.select(new.column_names), new)
