"""Merges, updates and deletes by condition without Spark.

Modules: hudi_fast.dml.target, hudi_fast.writing.dml_rows.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow.compute import field

import hudi_fast as hf
from hudi_fast.dml.assignments import resolved_spec
from hudi_fast.dml.statement import MergeSpec
from hudi_fast.formats.log.blocks import HeaderKey
from hudi_fast.merging.log_scan import visible_blocks
from hudi_fast.merging.rules import slice_merge
from hudi_fast.metadata_table.state import open_state
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import latest_slices
from tests.dml.dml_tables import contents, model_merge, new_table, rows, table_options
from tests.dml.moving_merges import (
    ARRIVING,
    MOVING_INDEXES,
    MOVING_MERGES,
    STORED,
    TIED,
    after_moving,
    moved_rows,
    moving_options,
    moving_rows,
)
from tests.support.examples import examples

KINDS = [
    pytest.param("COPY_ON_WRITE", 9, True, id="cow-9-parts"),
    pytest.param("COPY_ON_WRITE", 6, False, id="cow-6"),
    pytest.param("MERGE_ON_READ", 9, False, id="mor-9"),
    pytest.param("MERGE_ON_READ", 6, True, id="mor-6-parts"),
]


def commits(table: hf.HudiTable) -> int:
    return table.history().num_rows


def log_headers(table: hf.HudiTable) -> list[dict[HeaderKey, str]]:
    state = open_state(Storage(table.path))
    merge = slice_merge(state, None, False)
    slices = [one for path in state.view.lister.partitions() for one in latest_slices(state.view, path)]
    return [block.headers for one in slices if one.log_files for block in visible_blocks(merge, one)]


@pytest.mark.slow(but="mor-9")
@pytest.mark.parametrize(("kind", "version", "partitioned"), KINDS)
def test_a_merge_updates_deletes_and_inserts_in_one_commit(kind, version, partitioned, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", kind=kind, version=version, partitioned=partitioned)
    source = rows(range(5, 15), fare=7.0, ts=2).append_column("op", pa.array(["u", "d"] * 5))
    before = commits(table)
    result = (
        table.merge(source)
        .on("id")
        .when_matched_delete(field("source.op") == "d")
        .when_matched_update({"fare": field("source.fare") + field("target.fare"), "note": "'x'"})
        .when_not_matched_insert(condition=field("source.id") != 14)
        .execute()
    )
    assert (result.updates, result.deletes, result.inserts) == (3, 2, 4)
    assert commits(table) == before + 1
    kept = {row[0]: row for row in contents(new_table(tmp_path / "model"))}
    expected = model_merge(
        kept,
        [tuple(row.values())[:5] for row in source.to_pylist()],
        lambda old, new: None if new[0] % 2 == 0 else (*old[:3], old[3] + new[3], "x"),
        lambda new: new if new[0] != 14 else None,
    )
    assert contents(table) == sorted(expected.values())


def test_of_clauses_of_a_kind_the_first_that_holds_decides(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", range(6))
    (
        table.merge(rows(range(6)))
        .on(["id", "part"])
        .when_matched_update({"note": "'low'"}, field("target.id") < 2)
        .when_matched_delete(field("target.id") < 4)
        .when_matched_update({"note": "'high'"}, field("source.id") == 5)
        .execute()
    )
    assert [(row[0], row[4]) for row in contents(table)] == [(0, "low"), (1, "low"), (4, "n4"), (5, "high")]


def test_a_null_condition_does_not_hold_and_a_null_key_matches_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", range(3))
    source = pa.table({"key": pa.array([0, 1, None], pa.int64()), "ok": pa.array([True, None, True])})
    merge = table.merge(source).on({"id": "key"}).when_matched_delete(field("source.ok"))
    assert merge.execute().deletes == 1
    assert [row[0] for row in contents(table)] == [1, 2]


def test_star_sets_what_the_source_has_and_leaves_the_rest(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", range(2))
    source = pa.table({"id": [1, 7], "fare": [5.0, 6.0], "part": ["p1", "p1"], "ts": [3, 3], "extra": ["a", "b"]})
    table.merge(source).on("id").when_matched_update("*").when_not_matched_insert("*").execute()
    assert contents(table) == [(0, "p0", 1, 1.0, "n0"), (1, "p1", 3, 5.0, "n1"), (7, "p1", 3, 6.0, None)]


def test_other_names_stand_before_the_columns_if_they_are_given(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", range(2))
    merge = table.merge(rows([1], fare=4.0), aliases=("t", "s")).on(field("t.id") == field("s.id"))
    merge.when_matched_update({"fare": "s.fare", "note": "t.part"}).execute()
    assert contents(table)[1] == (1, "p1", 1, 4.0, "p1")


def test_rows_that_the_source_does_not_know_can_be_changed(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", range(6))
    (
        table.merge(rows([1, 2]))
        .on("id")
        .when_not_matched_by_source_update({"note": "'alone'"}, field("target.id") == 0)
        .when_not_matched_by_source_delete()
        .execute()
    )
    assert [(row[0], row[4]) for row in contents(table)] == [(0, "alone"), (1, "n1"), (2, "n2")]


@pytest.mark.slow("COPY_ON_WRITE")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_two_source_rows_for_one_row_are_refused_and_nothing_is_written(kind, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", kind=kind)
    before, twice = contents(table), pa.concat_tables([rows([3]), rows([3, 4])])
    with pytest.raises(hf.InvalidDataError, match=r"Several source rows .* 1 rows, with the keys '3'"):
        table.merge(twice).on("id").when_matched_update({"fare": 2.0}).execute()
    with pytest.raises(hf.InvalidDataError, match="'77'"):
        table.merge(rows([77, 77])).on("id").when_not_matched_insert().execute()
    assert contents(table) == before
    marked = twice.append_column("n", pa.array([0, 1, 2]))
    result = table.merge(marked).on("id").when_matched_update({"fare": 2.0}, field("source.n") > 0).execute()
    assert result.updates == 2


def test_a_row_to_insert_whose_key_is_stored_is_refused(tmp_path: Path) -> None:
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        table = new_table(tmp_path / kind, kind=kind)
        with pytest.raises(hf.DuplicateKeyError, match="Match on all record key columns"):
            table.merge(rows([3])).on({"note": "part"}).when_not_matched_insert().execute()
        assert len(contents(table)) == 10


def test_without_equal_columns_every_pair_is_looked_at(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    source = pa.table({"low": [2, 7], "high": [3, 8], "tag": ["a", "b"]})
    between = (field("target.id") >= field("source.low")) & (field("target.id") <= field("source.high"))
    table.merge(source).on(between).when_matched_update({"note": "source.tag"}).execute()
    assert [row[4] for row in contents(table)] == ["n0", "n1", "a", "a", "n4", "n5", "n6", "b", "b", "n9"]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version", "partitioned"), KINDS)
def test_updates_and_deletes_by_condition(kind, version, partitioned, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", kind=kind, version=version, partitioned=partitioned)
    result = table.update(field("id") < 3, {"fare": field("fare") * 10 + field("id"), "note": "part"})
    assert (result.operation, result.updates) == ("upsert", 3)
    assert contents(table)[:4] == [(i, f"p{i}", 1, 10.0 + i, f"p{i}") for i in range(3)] + [(3, "p0", 1, 1.0, "n3")]
    result = table.delete((field("id") == 1) | (field("fare") > 11))
    assert (result.operation, result.deletes) == ("delete", 2)
    assert [row[0] for row in contents(table)] == [0, 3, 4, 5, 6, 7, 8, 9]
    assert table.update(field("id") == 99, {"fare": None}, {"hoodie.allow.empty.commit": "false"}).instant == ""
    assert table.update(None, {"fare": None}).updates == 8
    assert {row[3] for row in contents(table)} == {None}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_that_makes_its_keys_is_changed_too(kind, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", kind=kind, **{"hoodie.datasource.write.recordkey.field": None})
    keys = dict(zip(*table.to_arrow(columns=["id", "_hoodie_record_key"]).to_pydict().values(), strict=True))
    merge = table.merge(rows(range(8, 12), fare=3.0)).on("id").when_matched_update().when_not_matched_insert()
    result = merge.execute()
    assert (result.updates, result.inserts) == (2, 2)
    assert table.delete(field("id") < 4).deletes == 4
    assert [(row[0], row[3]) for row in contents(table)] == [(i, 1.0 if i < 8 else 3.0) for i in range(4, 12)]
    now = dict(zip(*table.to_arrow(columns=["id", "_hoodie_record_key"]).to_pydict().values(), strict=True))
    assert {key: now[key] for key in range(4, 10)} == {key: keys[key] for key in range(4, 10)}
    assert len(set(now.values())) == 8


@pytest.mark.slow(but="MERGE_ON_READ-GLOBAL_SIMPLE")
@pytest.mark.parametrize("index", ["BLOOM", "GLOBAL_SIMPLE", "GLOBAL_RECORD_LEVEL_INDEX"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_row_whose_partition_column_is_set_moves(kind, index, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", kind=kind, **{"hoodie.index.type": index})
    options = {"hoodie.index.type": index}
    result = table.update(field("id").isin([2, 4]), {"part": "'p1'", "fare": 9.0}, options)
    assert (result.inserts, result.updates, result.deletes) == (1, 1, 1)
    assert contents(table)[2] == (2, "p1", 1, 9.0, "n2")
    assert contents(table)[4] == (4, "p1", 1, 9.0, "n4")
    table.upsert(rows([2], fare=5.0, ts=2).set_column(1, "part", pa.array(["p1"])), options)
    assert contents(table)[2] == (2, "p1", 2, 5.0, "n2")
    assert len(contents(table)) == 10


@pytest.mark.slow
def test_only_the_columns_that_are_set_are_logged(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", kind="MERGE_ON_READ")
    source = rows([3, 4, 5], fare=8.0)
    merge = table.merge(source).on("id").when_matched_delete(field("source.id") == 5)
    merge.when_matched_update({"fare": "source.fare"}).execute()
    headers = log_headers(table)
    assert {one[HeaderKey.IS_PARTIAL] for one in headers} == {"true"}
    assert all('"note"' not in one[HeaderKey.SCHEMA] for one in headers)
    assert [row[4] for row in contents(table)] == [f"n{i}" for i in range(10) if i != 5]
    assert contents(table)[3][3] == 8.0
    whole = {"hoodie.spark.sql.merge.into.partial.updates": "false"}
    table.update(field("id") == 6, {"fare": 2.0}, whole)
    assert any(HeaderKey.IS_PARTIAL not in one and '"note"' in one[HeaderKey.SCHEMA] for one in log_headers(table))


@pytest.mark.slow
def test_an_update_does_not_bring_back_values_of_a_late_row_in_the_log(tmp_path: Path) -> None:
    for change in ("update", "merge"):
        table = new_table(tmp_path / change, range(3), kind="MERGE_ON_READ")
        before = contents(table)
        table.upsert(rows([1], fare=99.0, ts=0))
        assert contents(table) == before
        if change == "update":
            table.update("id = 1", {"ts": "ts + 1"})
        else:
            table.merge(rows([1], ts=2)).on("id").when_matched_update({"ts": "source.ts"}).execute()
        assert contents(table)[1][2:] == (2, *before[1][3:])
        assert not any(one.get(HeaderKey.IS_PARTIAL) for one in log_headers(table))


def test_merges_that_insert_or_set_various_columns_log_whole_rows(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", kind="MERGE_ON_READ")
    merge = table.merge(rows([3])).on("id").when_matched_update({"fare": 3.0}, field("target.id") == 3)
    merge.when_matched_update({"note": "'x'"}).execute()
    assert all(HeaderKey.IS_PARTIAL not in one for one in log_headers(table))


@pytest.mark.slow
def test_the_ordering_value_decides_as_it_does_for_any_write(tmp_path: Path) -> None:
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        table = new_table(tmp_path / kind, range(3), kind=kind)
        table.update(field("id") == 0, {"note": "'late'", "ts": 0})
        table.update(field("id") == 1, {"note": "'equal'"})
        table.update(field("id") == 2, {"note": "'newer'", "ts": 2})
        assert [row[4] for row in contents(table)] == ["n0", "equal", "newer"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_deleted_key_comes_back(kind, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", kind=kind)
    table.delete(field("id") == 4)
    table.merge(rows([4], fare=6.0, ts=2)).on("id").when_not_matched_insert().execute()
    table.upsert(rows([4], fare=7.0, ts=3))
    assert [row[3] for row in contents(table) if row[0] == 4] == [7.0]


@pytest.mark.slow
def test_tables_without_meta_columns_and_with_buckets(tmp_path: Path) -> None:
    plain = new_table(tmp_path / "plain", **{"hoodie.populate.meta.fields": "false"})
    buckets = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    for table, options in (
        (plain, {"hoodie.populate.meta.fields": "false"}),
        (new_table(tmp_path / "b", **buckets), buckets),
    ):
        merge = table.merge(rows(range(8, 12), fare=2.0), options).on("id").when_matched_update({"fare": "source.fare"})
        merge.when_not_matched_insert().when_not_matched_by_source_delete(field("target.id") < 5).execute()
        assert [(row[0], row[3]) for row in contents(table)] == [(i, 1.0 if i < 8 else 2.0) for i in range(5, 12)]


def test_a_table_without_rows_takes_inserts(tmp_path: Path) -> None:
    table = hf.HudiTable.create(tmp_path / "t", rows([]).schema, table_options())
    assert table.merge(rows(range(3))).on("id").when_matched_update().when_not_matched_insert().execute().inserts == 3
    assert len(contents(table)) == 3


@pytest.mark.slow
def test_updates_from_many_threads_are_all_there(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", range(2))
    step = {"fare": field("fare") + 1}
    threads = [threading.Thread(target=lambda: table.update(field("id") == 1, step)) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert contents(table)[1][3] == 5.0


def test_a_commit_of_another_writer_in_between_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hudi_fast.dml import dml as run
    from hudi_fast.writing import flow
    from hudi_fast.writing.local import LocalEngine

    table = new_table(tmp_path / "t")
    before = contents(table)

    class Overtaken(LocalEngine):
        """While it writes, a writer that knows no lock of this machine commits."""

        def execute(self, plan):
            (tmp_path / "t/.hoodie/timeline/29990101000000000_29990101000000001.commit").write_bytes(b"")
            return super().execute(plan)

    assert flow.run_write is run.run_write
    monkeypatch.setattr(run, "LocalEngine", Overtaken)
    with pytest.raises(hf.CommitConflictError, match=r"was written to .29990101000000000. while"):
        table.update(None, {"fare": 0.0})
    (tmp_path / "t/.hoodie/timeline/29990101000000000_29990101000000001.commit").unlink()
    assert contents(table) == before


WRONG = [
    (lambda t: t.merge(rows([1])).when_matched_delete().execute(), "has no condition that matches rows"),
    (lambda t: t.merge(rows([1])).on("id").execute(), "has no `when_"),
    (lambda t: t.merge(rows([1])).on("id").on("id"), "call `on` once"),
    (lambda t: t.merge(rows([1])).on([]), "needs a column"),
    (lambda t: t.merge(rows([1])).on("nope").when_matched_delete().execute(), "no columns .'nope'."),
    (lambda t: t.merge(rows([1])).on("t.id = s.id").when_matched_delete().execute(), r"column .t\.id. does not"),
    (lambda t: t.merge(rows([1])).on("nope").when_matched_update().execute(), "on, columns of the table"),
    (lambda t: t.merge(rows([1])).on({"id": "x"}).when_matched_update().execute(), "on, columns of the source"),
    (lambda t: t.merge(rows([1])).on(1.5).when_matched_update().execute(), "is not a condition"),
    (lambda t: t.merge(rows([1])).on("part").when_matched_update().execute(), "`.` would set the record key columns"),
    (lambda t: t.merge(rows([1]), aliases=("t", "t")), "two different names"),
    (lambda t: t.merge(rows([1]), aliases="ts"), "two different names"),
    (
        lambda t: t.merge(rows([1])).on("id").when_matched_update({"fare": field("fare")}).execute(),
        "which side: target.fare",
    ),
    (lambda t: t.update(None, {"ts": 2**70}), "a column cannot hold"),
    (lambda t: t.merge(rows([1])).on("id").when_matched_delete().when_matched_update(), "can never come to anything"),
    (lambda t: t.merge(rows([1])).on("id").when_matched_update({"nope": 1}).execute(), "no columns .'nope'."),
    (lambda t: t.merge(rows([1])).on("id").when_matched_update({"fare": "x"}).execute(), "column .x. does not"),
    (lambda t: t.merge(rows([1])).on("id").when_matched_update({}).execute(), "Columns to set"),
    (lambda t: t.merge(rows([1])).on("part").when_matched_update({"id": 4}).execute(), "cannot be set"),
    (lambda t: t.merge(rows([1])).on("id").when_not_matched_by_source_update("*"), "no source to take"),
    (lambda t: t.update(field("id") == 1, {}), "sets columns"),
    (lambda t: t.update(field("id") == 1, {"id": 2}), "cannot be set"),
    (lambda t: t.update("nope = 1", {"fare": 2.0}), "column 'nope' does not exist"),
    (lambda t: t.update(1, {"fare": 2.0}), "A filter is SQL text"),
    (lambda t: t.update(field("nope") == 1, {"fare": 2.0}), "nope"),
    (lambda t: t.update(None, {"fare": field("nope")}), "nope"),
    (lambda t: t.update(None, {"fare": 1.0}, {"hoodie.datasource.write.operation": "insert"}), "leave it out"),
    (lambda t: t.update(None, {"fare": 1.0}, {"hudi_fast.partial.update": True}), "for upserts of partial rows"),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_what_makes_no_sense_is_refused(call, message, tmp_path_factory, request) -> None:
    table = new_table(tmp_path_factory.mktemp("wrong") / "t", range(3), partitioned=False)
    with pytest.raises(hf.ConfigError, match=message):
        call(table)
    assert len(contents(table)) == 3


def test_values_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", range(3))
    with pytest.raises(hf.InvalidDataError, match="'fare' is of type string and does not fit double"):
        table.update(None, {"fare": field("note")})
    with pytest.raises(hf.InvalidDataError, match="of type string and cannot be compared with 'id'"):
        table.merge(rows([1])).on({"id": "note"}).when_matched_delete().execute()
    with pytest.raises(hf.InvalidDataError, match="cannot be null or empty"):
        table.merge(rows([7])).on("id").when_not_matched_insert({"part": "'x'", "ts": 1}).execute()


IDS = st.integers(0, 12)
SOURCES = st.dictionaries(IDS, st.tuples(st.sampled_from([1.0, 2.0, None]), st.sampled_from("udk")), max_size=8)


@pytest.mark.slow
@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stored=st.sets(IDS, min_size=1), sources=st.lists(SOURCES, min_size=1, max_size=2), alone=st.booleans())
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_merges_do_what_a_dictionary_does(kind, stored, sources, alone, tmp_path_factory) -> None:
    table = new_table(tmp_path_factory.mktemp("model") / "t", sorted(stored), kind=kind)
    model = {row[0]: row for row in contents(table)}
    for source in sources:
        incoming = rows(source).set_column(3, "fare", pa.array([fare for fare, _ in source.values()], pa.float64()))
        incoming = incoming.append_column("op", pa.array([op for _, op in source.values()], pa.string()))
        merge = table.merge(incoming).on("id").when_matched_delete(field("source.op") == "d")
        merge = merge.when_matched_update({"fare": field("source.fare") * 2}, field("source.op") == "u")
        merge = merge.when_not_matched_insert(condition=field("source.fare") > 1)
        if alone:
            merge = merge.when_not_matched_by_source_update({"note": "'alone'"}, field("target.fare").is_null())
        merge.execute()
        ops = {key: op for key, (_, op) in source.items()}

        def matched(old, new, ops=ops):
            if ops[old[0]] == "k":
                return old
            return None if ops[old[0]] == "d" else (*old[:3], None if new[3] is None else new[3] * 2, old[4])

        model = model_merge(
            model,
            [tuple(row.values())[:5] for row in incoming.to_pylist()],
            matched,
            lambda new: new if new[3] is not None and new[3] > 1 else None,
            lambda row: (*row[:4], "alone") if alone and row[3] is None else row,
        )
        assert contents(table) == sorted(model.values(), key=lambda row: row[0])


def test_expressions_of_several_columns_are_computed(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", range(3))
    longer = pc.binary_join_element_wise(field("note"), field("part"), pc.scalar("-"))
    table.update(pc.starts_with(field("note"), "n1") | (field("id") > 1), {"note": longer, "fare": "-1.5e0"})
    assert [row[3:] for row in contents(table)] == [(1.0, "n0"), (-1.5, "n1-p1"), (-1.5, "n2-p2")]


@pytest.mark.slow("COPY_ON_WRITE")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_merge_that_sets_every_column_from_the_source_is_an_upsert(kind, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", kind=kind)
    merge = table.merge(rows(range(8, 12), fare=2.0, ts=2)).on(["id", "part"]).when_matched_update()
    result = merge.when_not_matched_insert().execute()
    assert (result.updates, result.inserts) == (2, 2)
    assert contents(table)[7:] == [(7, "p1", 1, 1.0, "n7")] + [(i, f"p{i % 3}", 2, 2.0, f"n{i}") for i in range(8, 12)]
    twice = pa.concat_tables([rows([3]), rows([3])])
    with pytest.raises(hf.InvalidDataError, match="with the keys '3'"):
        table.merge(twice).on(["id", "part"]).when_matched_update().when_not_matched_insert().execute()
    small = rows([3]).set_column(0, "id", pa.array([3], pa.int8()))
    table.merge(small, {"hoodie.index.type": "GLOBAL_BLOOM"}).on("id").when_matched_update().execute()
    assert len(contents(table)) == 12


def test_a_condition_that_says_that_keys_are_equal_is_a_match_by_key(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", range(3))
    same = (field("target.id") == field("source.id")) & (field("source.part") == field("target.part"))
    merge = table.merge(rows([1, 7], 5)).on(same)
    result = merge.when_matched_update().when_not_matched_insert().execute()
    assert (result.updates, result.inserts) == (1, 1)
    spec = MergeSpec((), "t.id = s.id AND (s.part = t.part)", (), ("t", "s"))
    assert resolved_spec(spec, ["id", "part"], ["id", "part"]).pairs == (("id", "id"), ("part", "part"))
    for other in ("t.id = s.id or t.id = 1", "not (t.id = s.id)", "t.id = t.part", "t.id = s.nope", "t.id < s.id"):
        kept = replace(spec, condition=other)
        assert resolved_spec(kept, ["id", "part"], ["id", "part"]) == kept


# ---- several source rows for one row of the table

SEVERAL = {1: [(15, "b"), (16, "c"), (14, "a")], 2: [(5, "x"), (6, "y")], 70: [(15, "f"), (16, "g"), (14, "e")]}


def several(tied: int | None = None) -> pa.Table:
    found = [(key, ts, note) for key, pairs in SEVERAL.items() for ts, note in pairs]
    found += [] if tied is None else [(tied, 30, "s"), (tied, 30, "t"), (tied, 29, "r")]
    keys = [key for key, _, _ in found]
    return pa.table(
        {
            "id": keys,
            "part": [f"p{key % 3}" for key in keys],
            "ts": [ts for _, ts, _ in found],
            "fare": [float(ts) for _, ts, _ in found],
            "note": [note for _, _, note in found],
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
@pytest.mark.parametrize(("kind", "version", "partitioned"), KINDS)
def test_of_several_source_rows_that_with_the_greatest_ordering_value_counts(
    kind, version, partitioned, mode, tmp_path: Path
) -> None:
    options = {} if version == 6 else {"hoodie.write.record.merge.mode": mode}

    def table(name: str) -> hf.HudiTable:
        return new_table(tmp_path / name, kind=kind, version=version, partitioned=partitioned, **options)

    on = ["id", "part"] if partitioned else ["id"]
    copied = {"ts": "source.ts", "note": "source.note", "fare": "source.fare"}
    merges = {
        "all": lambda merge: merge.when_matched_update().when_not_matched_insert(),
        "named": lambda merge: merge.when_matched_update({**copied}).when_not_matched_insert(),
        "without the ordering field": lambda merge: merge.when_matched_update(
            {"note": "source.note"}
        ).when_not_matched_insert(),
        "delete": lambda merge: (
            merge.when_matched_delete("source.note = 'c'").when_matched_update().when_not_matched_insert()
        ),
    }
    for name, clauses in merges.items():
        changed = table(name)
        clauses(changed.merge(several()).on(on)).execute()
        notes = {row[0]: row[4] for row in contents(changed)}
        assert notes.get(1) == (None if name == "delete" else "c")
        assert (notes[2], notes[70], notes[3]) == ("y", "g", "n3")
    changed = table("tied")
    before = contents(changed)
    for key in (4, 80):
        with pytest.raises(
            hf.InvalidDataError, match=f"have the same ordering values: 1 rows, .* '{key}' with ts = 30"
        ):
            changed.merge(several(tied=key)).on(on).when_matched_update().when_not_matched_insert().execute()
    assert contents(changed) == before


def test_without_an_ordering_field_several_source_rows_are_refused(tmp_path: Path) -> None:
    options = {"hoodie.datasource.write.precombine.field": None}
    table = new_table(tmp_path / "t", partitioned=False, **options)
    with pytest.raises(hf.InvalidDataError, match="no order decides between them: 3 rows"):
        table.merge(several()).on("id").when_matched_update().when_not_matched_insert().execute()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", list(MOVING_INDEXES))
def test_the_ordering_field_decides_between_source_rows_that_move_to_other_partitions(
    kind: str, index: str, tmp_path: Path
) -> None:
    for name, clauses in MOVING_MERGES.items():
        path = tmp_path / name
        options = {**moving_options(index), "hoodie.datasource.write.table.type": kind}
        hf.write(moving_rows(STORED), path, options)
        clauses(hf.merge(path, moving_rows(ARRIVING), options=options).on("id")).execute()
        assert moved_rows(hf.read(path)) == after_moving(index, name)
        for tied in TIED if MOVING_INDEXES[index] else TIED[:1]:
            with pytest.raises(hf.InvalidDataError, match=f"same ordering values.*'{tied[0][0]}' with ts = 50"):
                clauses(hf.merge(path, moving_rows(tied), options=options).on("id")).execute()
        assert moved_rows(hf.read(path)) == after_moving(index, name)


# ---- layouts of columns


def test_a_merge_takes_columns_of_any_layout_that_an_upsert_takes(tmp_path: Path) -> None:
    plain = rows([1, 70], fare=5.0, ts=7, note="m")
    forms = {
        "plain": plain,
        "dictionaries": plain.set_column(4, "note", plain["note"].dictionary_encode()),
        "runs": plain.set_column(2, "ts", pc.run_end_encode(plain["ts"])).set_column(
            4, "note", pc.run_end_encode(plain["note"])
        ),
        "views": plain.set_column(4, "note", plain["note"].cast(pa.string_view())),
        "categories": plain.to_pandas().astype({"note": "category", "part": "category"}),
    }
    for name, source in forms.items():
        merged, upserted = new_table(tmp_path / f"m {name}"), new_table(tmp_path / f"u {name}")
        merge = merged.merge(source).on(["id", "part"]).when_matched_update(condition="upper(source.note) = 'M'")
        merge.when_not_matched_insert().execute()
        upserted.upsert(source)
        assert contents(merged) == contents(upserted), name
