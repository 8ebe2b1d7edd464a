"""Indexes of live tables: built, planned, kept up, dropped; what died is taken away.

Modules: hudi_fast.services.index_build, hudi_fast.services.index_plan.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties
from hudi_fast.metadata_table.layout import load_definitions
from hudi_fast.metadata_table.read import scan
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.table import metadata_storage
from hudi_fast.metadata_table.updates.groups import WriteRecords, run_in_threads
from hudi_fast.services.index_build import build_index
from hudi_fast.services.index_plan import IndexRequest
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, State, read_instant_body, read_requested_body
from hudi_fast.timeline.service_plans import decode_index_metadata, decode_index_plan
from hudi_fast.timeline.transition import delete_instant_files
from hudi_fast.view.table_state import load_state
from tests.support.metadata_checks import assert_metadata_true
from tests.support.sessions import PartlyBackend, session_of
from tests.support.small_tables import options, plain_rows, table_rows

FILES_ONLY = {
    "hoodie.metadata.index.column.stats.enable": False,
    "hoodie.metadata.global.record.level.index.min.filegroup.count": 3,
}
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def make(path: Path, version: str = "9", kind: str = "COPY_ON_WRITE", **more: Any) -> dict[str, Any]:
    """Twenty rows in two partitions; the metadata table holds ``files`` alone."""
    settings = {**options(table_version=version), "hoodie.datasource.write.table.type": kind, **FILES_ONLY, **more}
    hf.write(plain_rows(range(20)), path, settings)
    return settings


def services(path: Path) -> Any:
    return hf.HudiTable.open(path).services


def states(path: Path) -> dict[str, str]:
    return {row["partition"]: row["state"] for row in services(path).indexes().to_pylist()}


def indexings(path: Path) -> list[Instant]:
    return list(load_state(Storage(path)).timeline.of_action("indexing"))


def assert_valid(path: Path) -> None:
    result = services(path).validate()
    assert result.differences.to_pylist() == []
    assert result.ok
    assert result.summary.num_rows == len(assert_metadata_true(path))


def while_it_builds(act: Any) -> WriteRecords:
    """A runner that does something once the index is being built, before it reads the table."""
    done: list[bool] = []

    def run(sources: Any, writer: Any) -> Any:
        if not done:
            done.append(True)
            act()
        return run_in_threads(sources, writer)

    return run


def build_with(path: Path, runner: WriteRecords, kind: str = "record_index", **words: Any) -> Any:
    session = session_of(path, FILES_ONLY, PartlyBackend(write_records=runner))
    return build_index(session, IndexRequest(kind, **words))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("6", "COPY_ON_WRITE"),
        ("8", "MERGE_ON_READ"),
        ("9", "MERGE_ON_READ"),
        *[
            pytest.param(*case, marks=pytest.mark.long)
            for case in (("6", "MERGE_ON_READ"), ("8", "COPY_ON_WRITE"), ("9", "COPY_ON_WRITE"))
        ],
    ],
)
def test_every_index_is_built_as_an_action_and_kept_up_by_writes(version: str, kind: str, tmp_path: Path) -> None:
    settings = make(tmp_path, version, kind)
    asked: list[tuple[Any, ...]] = [("record_index",), ("column_stats",), ("bloom_filters",)]
    if version != "6":
        asked += [("partition_stats",), ("secondary_index", ["text"], "words"), ("expr_index", ["text"], None, "upper")]
    for arguments in asked:
        result = services(tmp_path).index(*arguments, options=FILES_ONLY)
        assert result.partitions == (result.partition,)
        assert result.records > 0
        assert result.file_groups == metadata_groups(tmp_path, result.partition)
        assert services(tmp_path).index(*arguments).instant == ""  # it is there
    done = indexings(tmp_path)
    assert [one.state for one in done] == [State.COMPLETED] * len(asked)
    assert set(states(tmp_path).values()) == {"ready"}
    assert_valid(tmp_path)
    kept = {**settings, "hoodie.metadata.index.column.stats.enable": True}
    hf.write(plain_rows(range(15, 30), ts=2, text="b"), tmp_path, kept)
    hf.write(plain_rows([1, 29], ts=3), tmp_path, {**kept, "hoodie.datasource.write.operation": "delete"})
    assert set(states(tmp_path).values()) == {"ready"}
    assert_valid(tmp_path)


def metadata_groups(path: Path, partition: str) -> int:
    table = metadata_of(open_state(Storage(path)))
    assert table is not None
    return len(table.groups(partition))


def test_the_action_says_what_was_built_up_to_which_write(tmp_path: Path) -> None:
    make(tmp_path)
    result = services(tmp_path).index("record_index")
    storage, state = Storage(tmp_path), load_state(Storage(tmp_path))
    (instant,) = state.timeline.of_action("indexing")
    last = state.timeline.last_completed_write
    assert last is not None
    assert instant.requested == result.instant > last.requested
    for parts in (
        decode_index_plan(read_requested_body(storage, state.config, instant)),
        decode_index_metadata(read_instant_body(storage, state.config, instant)),
    ):
        assert [(one.partition, one.upto) for one in parts] == [("record_index", last.requested)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "index"),
    [
        ("COPY_ON_WRITE", "record_index"),
        ("MERGE_ON_READ", "record_index"),
        ("MERGE_ON_READ", "column_stats"),
        ("COPY_ON_WRITE", "bloom_filters"),
        ("COPY_ON_WRITE", "partition_stats"),
    ],
)
def test_writes_that_come_while_it_is_built_are_in_it(kind: str, index: str, tmp_path: Path) -> None:
    kept = {"hoodie.metadata.index.column.stats.enable": index.endswith("stats")}
    settings = {**make(tmp_path, "9", kind), **kept}

    def act() -> None:
        assert states(tmp_path)[index] == "building"
        for ts, rows in ((2, plain_rows(range(10, 30), ts=2, text="b")), (3, plain_rows(range(25, 33), ts=3))):
            hf.write(rows, tmp_path, {**settings, "hoodie.metadata.compact.max.delta.commits": ts})
        hf.write(plain_rows([2, 31], ts=4), tmp_path, {**settings, "hoodie.datasource.write.operation": "delete"})

    result = build_with(tmp_path, while_it_builds(act), index)
    assert result.partition == index
    assert_valid(tmp_path)
    hf.write(plain_rows(range(5, 40), ts=5), tmp_path, settings)
    assert len(table_rows(tmp_path)) == 40 - 1  # k00031 came back, k00002 did not
    assert_valid(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("index", ["column_stats", "record_index"])
def test_a_compaction_that_was_planned_before_ends_while_it_is_built(index: str, tmp_path: Path) -> None:
    stats = {"hoodie.metadata.index.column.stats.enable": index == "column_stats", "hoodie.compact.inline": False}
    settings = {**make(tmp_path, "9", "MERGE_ON_READ"), **stats}
    hf.write(plain_rows(range(5, 15), ts=2, text="b"), tmp_path, {**settings, "hoodie.metadata.index.drop": index})
    planned = services(tmp_path).schedule_compact()

    def act() -> None:
        hf.write(plain_rows(range(10, 25), ts=3, text="c"), tmp_path, settings)
        assert services(tmp_path).compact(stats, plan=planned).file_groups == 2

    build_with(tmp_path, while_it_builds(act), index)
    assert_valid(tmp_path)


@pytest.mark.slow
def test_a_secondary_index_brings_the_record_index_that_it_rests_on(tmp_path: Path) -> None:
    settings = make(tmp_path)

    def act() -> None:
        hf.write(plain_rows(range(15, 25), ts=2, text="z"), tmp_path, settings)

    result = build_with(tmp_path, while_it_builds(act), "secondary_index", columns=("text",), name="words")
    assert result.partitions == ("record_index", "secondary_index_words")
    assert_valid(tmp_path)
    steps = hf.HudiTable.open(tmp_path).explain(pc.field("text") == "z20").to_pylist()
    assert "secondary_index_words" in str(steps)
    with pytest.raises(hf.ConfigError, match=r"secondary_index_words requires it"):
        services(tmp_path).drop_index("record_index")
    assert services(tmp_path).drop_index("words") == ("secondary_index_words",)
    assert services(tmp_path).drop_index("record_index") == ("record_index",)
    assert_valid(tmp_path)


def test_what_is_dropped_is_gone_from_folders_properties_and_definitions(tmp_path: Path) -> None:
    settings = make(tmp_path)
    services(tmp_path).index("partition_stats")
    services(tmp_path).index("expr_index", ["text"], function="lower", name="low")
    assert services(tmp_path).drop_index("low") == ("expr_index_low",)
    assert services(tmp_path).drop_index("column_stats") == ("column_stats", "partition_stats")
    storage = Storage(tmp_path)
    assert states(tmp_path) == {"files": "ready"}
    assert load_definitions(storage, load_state(storage).config) == {}
    for name in ("expr_index_low", "column_stats", "partition_stats"):
        assert not storage.exists(f".hoodie/metadata/{name}")
    with pytest.raises(hf.ConfigError, match=r"no index 'low': the table has files"):
        services(tmp_path).drop_index("low")
    hf.write(plain_rows(range(3), ts=2), tmp_path, settings)
    assert states(tmp_path) == {"files": "ready"}
    assert services(tmp_path).drop_index("files") == ("files",)
    assert states(tmp_path) == {}
    assert not storage.exists(".hoodie/metadata")


def test_a_table_without_metadata_table_gets_one(tmp_path: Path) -> None:
    make(tmp_path, "9", "COPY_ON_WRITE", **{"hoodie.metadata.enable": False})
    assert services(tmp_path).validate().summary.num_rows == 0
    assert services(tmp_path).index("record_index").partitions == ("record_index",)
    assert states(tmp_path) == {"files": "ready", "record_index": "ready"}
    assert_valid(tmp_path)


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_table_without_rows_has_indexes_without_records(version: str, tmp_path: Path) -> None:
    settings = {**options(table_version=version), **FILES_ONLY}
    table = hf.HudiTable.create(tmp_path, plain_rows([1]).schema, settings)
    assert table.services.index("record_index", options=FILES_ONLY).records == 0
    assert [(one["expected"], one["found"]) for one in table.services.validate().summary.to_pylist()] == [(0, 0)] * 2
    hf.write(plain_rows(range(5)), tmp_path, settings)
    assert table.services.validate().summary.column("found").to_pylist() == [4, 5]
    assert_valid(tmp_path)


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_table_without_meta_columns_and_partitions(version: str, tmp_path: Path) -> None:
    settings = {**options(table_version=version, partition=None), **FILES_ONLY, "hoodie.populate.meta.fields": False}
    hf.write(plain_rows(range(20)), tmp_path, settings)
    assert services(tmp_path).index("record_index").records == 20
    for kind, said in (("bloom_filters", "no meta columns"), ("partition_stats", "version 8|has no partitions")):
        with pytest.raises(hf.ConfigError, match=said):
            services(tmp_path).index(kind)
    hf.write(plain_rows(range(10, 30), ts=2, text="b"), tmp_path, settings)
    result = services(tmp_path).validate()
    assert result.differences.to_pylist() == []
    assert result.summary.column("found").to_pylist()[-1] == 30


def test_the_metadata_table_alone_is_no_indexing(tmp_path: Path) -> None:
    make(tmp_path, "9", "COPY_ON_WRITE", **{"hoodie.metadata.enable": False})
    assert services(tmp_path).index("files").partitions == ("files",)
    assert services(tmp_path).index("files").partitions == ()
    assert indexings(tmp_path) == []


def test_a_plan_waits_and_is_carried_out(tmp_path: Path) -> None:
    settings = make(tmp_path)
    planned = services(tmp_path).schedule_index("secondary_index", ["text"])
    assert planned.partitions == ("record_index", "secondary_index_text")
    assert states(tmp_path) == {"files": "ready", "record_index": "planned", "secondary_index_text": "planned"}
    with pytest.raises(hf.CommitConflictError, match="already planned"):
        services(tmp_path).schedule_index("record_index")
    hf.write(plain_rows(range(10, 25), ts=2, text="b"), tmp_path, settings)
    (waiting,) = services(tmp_path).pending_indexes()
    assert waiting == planned
    assert services(tmp_path).index(plan=waiting).instant == planned.instant
    assert_valid(tmp_path)
    assert services(tmp_path).pending_indexes() == []
    with pytest.raises(hf.CommitConflictError, match="not pending"):
        services(tmp_path).index(plan=waiting)
    assert services(tmp_path).schedule_index("record_index") is None


@pytest.mark.slow
def test_plans_that_wait_are_carried_out_when_their_index_is_asked_for(tmp_path: Path) -> None:
    make(tmp_path)
    first = services(tmp_path).schedule_index("record_index")
    second = services(tmp_path).schedule_index("bloom_filters")
    result = services(tmp_path).index("secondary_index", ["text"])
    assert result.partitions == ("record_index", "secondary_index_text")
    assert [one.instant for one in services(tmp_path).pending_indexes()] == [second.instant]
    assert services(tmp_path).index("bloom_filters").instant == second.instant
    assert [one.requested for one in indexings(tmp_path)] == sorted([first.instant, second.instant, result.instant])
    assert_valid(tmp_path)


def test_columns_and_kind_of_record_index_are_in_the_plan(tmp_path: Path) -> None:
    make(tmp_path)
    services(tmp_path).schedule_index("column_stats", ["ts"])
    services(tmp_path).schedule_index("record_index", options={"hoodie.metadata.record.level.index.enable": True})
    for planned in services(tmp_path).pending_indexes():
        services(tmp_path).index(plan=planned)
    table = metadata_of(open_state(Storage(tmp_path)))
    assert table is not None
    assert table.definitions["column_stats"].source_fields[-1] == "ts"
    assert table.is_by_partition("record_index")
    assert len(table.groups("record_index")) == 2
    assert_valid(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "version"),
    [
        (hf.InvalidDataError("no"), "9"),
        (OSError("disk full"), "6"),
        (KeyboardInterrupt(), "9"),
        *[
            pytest.param(*case, marks=pytest.mark.long)
            for case in ((hf.InvalidDataError("no"), "6"), (OSError("disk full"), "9"), (KeyboardInterrupt(), "6"))
        ],
    ],
)
def test_what_fails_leaves_the_table_as_it_was(version: str, error: BaseException, tmp_path: Path) -> None:
    settings = make(tmp_path, version)
    before = load_properties(Storage(tmp_path))

    def fail(sources: Any, writer: Any) -> Any:
        run_in_threads(sources, writer)
        raise error

    raised = hf.CommitError if isinstance(error, OSError) else type(error)
    with pytest.raises(raised):
        build_with(tmp_path, fail)
    after = load_properties(Storage(tmp_path))
    assert after["hoodie.table.metadata.partitions"] == before["hoodie.table.metadata.partitions"] == "files"
    assert not after.get("hoodie.table.metadata.partitions.inflight")
    assert indexings(tmp_path) == []
    assert not Storage(tmp_path).exists(".hoodie/metadata/record_index")
    assert_valid(tmp_path)
    hf.write(plain_rows(range(30), ts=2), tmp_path, settings)
    assert services(tmp_path).index("record_index").records == 30
    assert_valid(tmp_path)


def test_a_plan_that_fails_waits_again(tmp_path: Path) -> None:
    make(tmp_path)
    planned = services(tmp_path).schedule_index("secondary_index", ["part"], name="p")
    storage = Storage(tmp_path)
    state = load_state(storage)
    delete_instant_files(storage, state.config, state.timeline.writes()[0])  # no rows any more, and no schema
    with pytest.raises(hf.HudiError):
        services(tmp_path).index(plan=planned)
    assert [one.state for one in indexings(tmp_path)] == [State.REQUESTED]


class Dies(Exception):
    """Stands for the end of the process: nothing is cleaned up after it."""


def die_while_building(path: Path, monkeypatch: pytest.MonkeyPatch, runner: WriteRecords) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("hudi_fast.services.index_build._undo", lambda *_: None)
        with pytest.raises(Dies):
            build_with(path, runner)


def test_an_indexing_that_died_is_logged_to_and_then_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = make(tmp_path)

    def die(sources: Any, writer: Any) -> Any:
        raise Dies

    die_while_building(tmp_path, monkeypatch, die)
    assert states(tmp_path) == {"files": "ready", "record_index": "building"}
    (dead,) = indexings(tmp_path)
    assert dead.state is State.INFLIGHT
    hf.write(plain_rows(range(10, 30), ts=2), tmp_path, settings)
    assert len(table_rows(tmp_path)) == 30
    result = services(tmp_path).index("record_index", options=FILES_ONLY)
    assert result.records == 30
    assert [one.requested for one in indexings(tmp_path)] == [result.instant] != [dead.requested]
    assert not metadata_pending(tmp_path)
    assert_valid(tmp_path)


def metadata_pending(path: Path) -> tuple[Instant, ...]:
    table = metadata_of(open_state(Storage(path)))
    assert table is not None
    return table.timeline.pending()


def test_one_that_died_after_its_last_word_is_completed(tmp_path: Path) -> None:
    make(tmp_path)
    result = services(tmp_path).index("record_index")
    (done,) = indexings(tmp_path)
    assert done.file_name is not None
    (tmp_path / ".hoodie/timeline" / done.file_name).unlink()
    assert [one.state for one in indexings(tmp_path)] == [State.INFLIGHT]
    assert services(tmp_path).index("record_index").instant == ""
    assert [(one.requested, one.state) for one in indexings(tmp_path)] == [(result.instant, State.COMPLETED)]
    assert_valid(tmp_path)


def test_one_that_another_program_carries_out_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path)

    def die(sources: Any, writer: Any) -> Any:
        raise Dies

    die_while_building(tmp_path, monkeypatch, die)
    (running,) = indexings(tmp_path)
    Storage(tmp_path).write_bytes(f".hoodie/.heartbeat/{running.requested}", b"")
    with pytest.raises(hf.CommitConflictError, match="heartbeat"):
        services(tmp_path).index("record_index")
    assert states(tmp_path)["record_index"] == "building"


def test_an_index_that_was_dropped_while_it_was_built_is_not_completed(tmp_path: Path) -> None:
    settings = make(tmp_path)
    dropping = {**settings, "hoodie.metadata.index.drop": "record_index"}
    with pytest.raises(hf.CommitConflictError, match="dropped while it was built"):
        build_with(tmp_path, while_it_builds(lambda: hf.write(plain_rows([1], ts=2), tmp_path, dropping)))
    assert states(tmp_path) == {"files": "ready"}
    assert indexings(tmp_path) == []
    assert_valid(tmp_path)


def test_the_metadata_table_is_compacted_around_an_index_that_is_built(tmp_path: Path) -> None:
    settings = {**make(tmp_path), "hoodie.metadata.compact.max.delta.commits": 1}

    def act() -> None:
        for ts in (2, 3):
            hf.write(plain_rows(range(ts * 10, ts * 10 + 5), ts=ts), tmp_path, settings)
        table = metadata_of(open_state(Storage(tmp_path)))
        assert table is not None
        assert any(one.action == "commit" for one in table.timeline.writes())

    build_with(tmp_path, while_it_builds(act))
    table = metadata_of(open_state(Storage(tmp_path)))
    assert table is not None
    assert scan(table, "record_index").num_rows == len(table_rows(tmp_path))
    assert_valid(tmp_path)


@pytest.mark.slow
def test_an_index_built_late_leaves_those_that_rest_on_archived_compactions(tmp_path: Path) -> None:
    """The metadata table's delta commit that builds it has a time before all that were archived."""
    soon = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.commits.archival.batch": 1}
    soon |= {"hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX", "hoodie.metadata.compact.max.delta.commits": 1}
    settings = make(tmp_path, **soon)
    for ts in range(2, 9):  # rows that have their place in the record index already
        hf.write(plain_rows(range(20), ts=ts), tmp_path, settings)
        services(tmp_path).archive(settings)
    table = metadata_of(open_state(Storage(tmp_path)))
    assert table is not None
    assert all(one.base_instant < table.timeline.writes()[0].requested for one in table.groups("record_index"))
    services(tmp_path).index("column_stats", options=settings)
    assert_valid(tmp_path)
    hf.write(plain_rows(range(15, 25), ts=9), tmp_path, settings)
    assert sorted(table_rows(tmp_path)) == [f"k{number:05d}" for number in range(25)]
    assert_valid(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"kind": "stats"}, "no kind of index 'stats'"),
        ({"kind": "secondary_index"}, "over one column"),
        ({"kind": "record_index", "columns": ["id"]}, "takes no columns"),
        ({"kind": "record_index", "name": "x"}, "no name of its own"),
        ({"kind": "expr_index", "columns": ["text"]}, "give function="),
        ({"kind": "secondary_index", "columns": ["text"], "function": "upper"}, "Only an expr_index"),
    ],
)
def test_requests_that_make_no_sense_say_why(arguments: dict[str, Any], said: str, tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(hf.ConfigError, match=said):
        services(tmp_path).index(**arguments)
    assert indexings(tmp_path) == []


@pytest.mark.parametrize("kind", ["partition_stats", "secondary_index"])
def test_an_index_that_a_version_cannot_have_is_refused(kind: str, tmp_path: Path) -> None:
    make(tmp_path, "6")
    with pytest.raises(hf.ConfigError, match="version 8 or later"):
        services(tmp_path).index(kind, ["text"] if kind == "secondary_index" else [])


def test_an_index_over_a_column_that_cannot_be_indexed_is_refused(tmp_path: Path) -> None:
    rows = plain_rows(range(4)).append_column("tags", pa.array([["a"], [], None, ["b"]], pa.list_(pa.string())))
    hf.write(rows, tmp_path, {**options(), **FILES_ONLY})
    services(tmp_path).index("record_index")
    for column in ("tags", "nothing"):
        with pytest.raises(hf.UnsupportedFeatureError, match=column):
            services(tmp_path).index("secondary_index", [column])
    assert [one.state for one in indexings(tmp_path)] == [State.COMPLETED]
    assert states(tmp_path) == {"files": "ready", "record_index": "ready"}


def test_rows_with_one_key_stop_a_record_index(tmp_path: Path) -> None:
    settings = {**options(), **FILES_ONLY, "hoodie.datasource.write.operation": "bulk_insert"}
    for _ in range(2):
        hf.write(plain_rows(range(3)), tmp_path, settings)
    with pytest.raises(hf.InvalidDataError):
        services(tmp_path).index("record_index")
    assert states(tmp_path) == {"files": "ready"}
    assert metadata_storage(Storage(tmp_path)).list_dir("record_index") == []


def found_by(path: Path, text: str) -> tuple[list[str], bool]:
    """Keys of rows by the index, and whether it left out a file slice."""
    where = pc.utf8_upper(pc.field("text")) == text
    table = hf.HudiTable.open(path)
    steps = [one for one in table.explain(where).to_pylist() if str(one["index"]).startswith("expr_index")]
    keys = table.to_arrow(columns=["id"], filter=where)["id"].to_pylist()
    return sorted(keys), bool(steps) and steps[0]["after"] < steps[0]["before"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_filters_of_a_function_follow_the_rows(kind: str, tmp_path: Path) -> None:
    settings = make(tmp_path, kind=kind, **{"hoodie.parquet.small.file.limit": 0, "hoodie.compact.inline": False})
    filters = {"hoodie.expression.index.type": "bloom_filters"}
    sizes = {"numentries": "500", "fpp": "0.000001", "filtertype": "SIMPLE"}
    built = services(tmp_path).index("expr_index", ["text"], "loud", "upper", sizes, filters)
    assert (built.partition, built.records) == ("expr_index_loud", 2)
    assert found_by(tmp_path, "A4") == (["k00004"], True)
    rows = plain_rows(range(4, 30), ts=2, text="b")
    texts = ["", None, *rows["text"].to_pylist()[2:]]
    steps: list[tuple[pa.Table, str]] = [
        (rows.set_column(rows.column_names.index("text"), "text", pa.array(texts)), "upsert"),
        (plain_rows([8, 10], ts=3, text="c"), "upsert"),
        (plain_rows([6]), "delete"),
    ]
    for new, operation in steps:
        hf.write(new, tmp_path, {**settings, "hoodie.datasource.write.operation": operation})
        assert_valid(tmp_path)
    assert [found_by(tmp_path, text)[0] for text in ("B6", "B7", "B8", "C8", "")] == [
        *([], ["k00007"], [], ["k00008"], ["k00004"])
    ]
    assert found_by(tmp_path, "NONE") == ([], True)
    if kind == "MERGE_ON_READ":
        services(tmp_path).compact({"hoodie.compact.inline.max.delta.commits": 1})
    services(tmp_path).cluster()
    assert_valid(tmp_path)
    hf.write(
        plain_rows([2, 4], text="d"), tmp_path, {**settings, "hoodie.datasource.write.operation": "insert_overwrite"}
    )
    services(tmp_path).clean({"hoodie.clean.commits.retained": 1})
    assert_valid(tmp_path)
    assert found_by(tmp_path, "D4") == (["k00004"], True)
    assert services(tmp_path).drop_index("loud") == ("expr_index_loud",)


@pytest.mark.parametrize(
    ("function", "arguments", "says"),
    [
        ("to_date", {}, "Apache Hudi looks for their number"),
        ("regexp_replace", {"pattern": r"\bx", "replacement": ""}, r"the form \\b"),
        ("upper", {"numentries": "many"}, "numentries"),
        ("upper", {"format": "x"}, "which Apache Hudi refuses"),
        ("soundex", {}, "supported are identity"),
    ],
)
def test_filters_that_would_be_of_no_use_are_refused(
    function: str, arguments: dict[str, str], says: str, tmp_path: Path
) -> None:
    make(tmp_path)
    before = load_properties(Storage(tmp_path))
    filters = {"hoodie.expression.index.type": "bloom_filters"}
    with pytest.raises(hf.HudiError, match=says):
        services(tmp_path).index("expr_index", ["text"], None, function, arguments, filters)
    assert load_properties(Storage(tmp_path)) == before
    assert not [one for one in indexings(tmp_path) if not one.is_completed]


def test_statistics_of_lists_are_refused(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(hf.UnsupportedFeatureError, match="whose results are lists"):
        services(tmp_path).index("expr_index", ["text"], None, "split", {"pattern": ","})
    filters = {"hoodie.expression.index.type": "bloom_filters"}
    services(tmp_path).index("expr_index", ["text"], None, "split", {"pattern": ","}, filters)
    assert_valid(tmp_path)


@pytest.mark.slow
def test_a_pair_of_rows_in_two_partitions_goes_with_the_last_of_them(tmp_path: Path) -> None:
    names = ["id", "part", "ts", "text"]
    rows = pa.Table.from_pylist(
        [dict(zip(names, row, strict=True)) for row in (("a", "p0", 1, "x"), ("a", "p1", 1, "x"), ("b", "p0", 1, "y"))]
    )
    by_partition = {
        "hoodie.metadata.record.level.index.enable": True,
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.index.column.stats.enable": False,
    }
    settings = {**options(), **by_partition}
    hf.write(rows, tmp_path, settings)
    services(tmp_path).index("secondary_index", ["text"])
    changes = [(rows.slice(0, 1), "delete"), (rows.slice(0, 1), "upsert"), (rows.slice(0, 2), "delete")]
    for new, operation in changes:
        hf.write(new, tmp_path, {**settings, "hoodie.datasource.write.operation": operation})
        assert_valid(tmp_path)
    changed = rows.set_column(3, "text", pa.array(["z", "x", "y"]))
    for new in (rows, changed):
        hf.write(new, tmp_path, settings)
        assert_valid(tmp_path)


@pytest.mark.slow
def test_a_secondary_index_of_a_field_in_a_struct(tmp_path: Path) -> None:
    rows = plain_rows(range(20))
    place = pa.array([{"city": f"c{n}", "at": {"day": n}} for n in range(20)])
    rows = rows.append_column("place", place)
    hf.write(rows, tmp_path, {**options(), **FILES_ONLY})
    for name, where in (
        ("place.city", pc.field("place", "city") == "c3"),
        ("place.at.day", pc.field("place", "at", "day") == 3),
    ):
        done = services(tmp_path).index("secondary_index", [name])
        assert done.partition == f"secondary_index_{name.replace('.', '_')}"
        table = hf.HudiTable.open(tmp_path)
        assert table.to_arrow(columns=["id"], filter=where)["id"].to_pylist() == ["k00003"]
        assert done.partition in table.explain(where).column("index").to_pylist()
    hf.write(
        rows.slice(3, 5).drop_columns("place").append_column("place", place.slice(0, 5)),
        tmp_path,
        {**options(), **FILES_ONLY},
    )
    assert_valid(tmp_path)
    for wrong in ("place", "place.town", "id.city"):
        with pytest.raises(hf.UnsupportedFeatureError, match=f"over '{wrong}'"):
            services(tmp_path).index("secondary_index", [wrong], name="wrong")
