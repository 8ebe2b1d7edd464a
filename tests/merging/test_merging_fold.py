"""Folding a log and merging it with a base file, against the rules applied to one record after the other."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from hudi_fast.errors import InvalidDataError
from hudi_fast.formats.parquet.base_file import ParquetReader
from hudi_fast.merging.base_merge import entry_replacement, incoming_beats_stored, merged_batches, resolve_matches
from hudi_fast.merging.fold import blend_duplicates, combine, commit_time_deletes, fold
from hudi_fast.merging.log_entries import LogEntries
from hudi_fast.merging.row_buffer import BatchedRows
from hudi_fast.merging.rules import (
    COMMIT_TIME,
    CUSTOM,
    EVENT_TIME,
    FILL_UNAVAILABLE,
    IGNORE_DEFAULTS,
    MergeRules,
    ordering_columns,
    ordering_rank,
)
from tests.naive.merge import NaiveRules, Version, naive_fold, naive_slice
from tests.support.examples import examples

COLUMNS = {
    "_hoodie_commit_time": pa.string(),
    "_hoodie_record_key": pa.string(),
    "n": pa.int64(),
    "s": pa.string(),
    "l": pa.list_(pa.int32()),
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "n": st.sampled_from([None, 0, 1, 2, 3]),
    "s": st.sampled_from([None, "gone", "a", "bb"]),
    "l": st.sampled_from([None, [], [1], [2, 3]]),
}
KEYS = "abcde"


def sum_or_drop(older: pa.Table, newer: pa.Table) -> pa.Table:
    """A user's merger: adds up ``n``, keeps the newer rest; a sum of 5 makes the row go."""
    rows = [drop_or_sum(old, new) for old, new in zip(older.to_pylist(), newer.to_pylist(), strict=True)]
    made = pa.Table.from_pylist([row or new for row, new in zip(rows, newer.to_pylist(), strict=True)], newer.schema)
    return made.append_column("_hoodie_is_deleted", pa.array([row is None for row in rows], pa.bool_()))


def drop_or_sum(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any] | None:
    total = (old["n"] or 0) + (new["n"] or 0)
    return None if total == 5 else {**new, "n": total}


@dataclass(frozen=True)
class Case:
    """Rules for both sides."""

    name: str
    rules: MergeRules
    naive: NaiveRules


DEFAULTS = {"n": 0}
CASES = [
    Case("commit time", MergeRules(COMMIT_TIME), NaiveRules()),
    Case("event time", MergeRules(EVENT_TIME), NaiveRules(compares=True, orders=True)),
    Case(
        "ties keep the stored row",
        MergeRules(EVENT_TIME, same_ordering_updates=False),
        NaiveRules(compares=True, orders=True, same_ordering_updates=False),
    ),
    Case(
        "commit time, ignoring defaults",
        MergeRules(COMMIT_TIME, partial_mode=IGNORE_DEFAULTS, defaults=DEFAULTS),
        NaiveRules(partial_mode=IGNORE_DEFAULTS, defaults=DEFAULTS),
    ),
    Case(
        "event time, ignoring defaults",
        MergeRules(EVENT_TIME, partial_mode=IGNORE_DEFAULTS),
        NaiveRules(compares=True, orders=True, partial_mode=IGNORE_DEFAULTS),
    ),
    Case(
        "event time, filling what was not sent",
        MergeRules(EVENT_TIME, partial_mode=FILL_UNAVAILABLE, unavailable_value="gone"),
        NaiveRules(compares=True, orders=True, partial_mode=FILL_UNAVAILABLE, unavailable="gone"),
    ),
    Case(
        "partial update payload",
        MergeRules(EVENT_TIME, partial_mode=IGNORE_DEFAULTS, partial_payload=True),
        NaiveRules(compares=True, orders=True, partial_mode=IGNORE_DEFAULTS, partial_payload=True),
    ),
    Case(
        "overwrite payload of release 0",
        MergeRules(COMMIT_TIME, log_ordering=True),
        NaiveRules(orders=True, bare_yields=True),
    ),
    Case("merger", MergeRules(CUSTOM, merger=sum_or_drop), NaiveRules(merger=drop_or_sum)),
]


@dataclass(frozen=True)
class Log:
    """Random versions of keys, stored and in the log, with the rules that merge them."""

    rules: MergeRules
    naive: NaiveRules
    kinds: list[pa.DataType]
    stored: list[Version]
    versions: list[Version]

    @property
    def schema(self) -> pa.Schema:
        """Columns of rows: those of ``COLUMNS``, then one per ordering field."""
        ordering = {f"t{i}": kind for i, kind in enumerate(self.kinds)}
        return pa.schema(list((COLUMNS | ordering).items()))

    def entries(self, batch_rows: int | None = None) -> LogEntries:
        """The log as columns; rows that delete have values, which are not to be looked at.

        With ``batch_rows`` the rows are as in a mapped file.
        """
        with_rows = [v for v in self.versions if not v["bare"]]
        rows = pa.Table.from_pylist([v["row"] or {"n": 9, "s": "deleted"} for v in with_rows], self.schema)
        sets = sorted({v["columns"] for v in self.versions if v["columns"] is not None}, key=sorted)
        number = [-1 if v["columns"] is None else sets.index(v["columns"]) for v in self.versions]
        places = iter(range(len(with_rows)))
        return LogEntries(
            keys=pa.array([v["key"] for v in self.versions], pa.string()),
            rows=rows.combine_chunks() if batch_rows is None else (rows := in_batches(rows, batch_rows)),
            row=np.array([-1 if v["bare"] else next(places) for v in self.versions], np.int64),
            deletes=np.array([v["row"] is None for v in self.versions], np.bool_),
            default_ordering=np.array([v["default"] for v in self.versions], np.bool_),
            ordering=self.ordering(self.versions),
            mismatched=np.array([v["mismatched"] for v in self.versions], np.bool_),
            column_sets=tuple(sets),
            column_set=np.array(number, np.int32) if sets else None,
            batched=None if batch_rows is None else BatchedRows(rows, lambda: None),
        )

    def ordering(self, versions: list[Version]) -> tuple[pa.Array, ...]:
        """Ordering columns of versions."""
        if not self.rules.orders:
            return ()
        return tuple(pa.array([v["ordering"][i] for v in versions], kind) for i, kind in enumerate(self.kinds))


def a_row(data: st.DataObject, key: str, number: int, ordering: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "_hoodie_commit_time": f"{number:03d}",
        "_hoodie_record_key": key,
        **{name: data.draw(values) for name, values in VALUES.items()},
        **{f"t{i}": value for i, value in enumerate(ordering)},
    }


def a_version(data: st.DataObject, kinds: list[pa.DataType], key: str, number: int, what: str) -> Version:
    ordering = tuple(data.draw(st.sampled_from([None, 0, 1, 2])) for _ in kinds)
    mismatched = what == "mismatched" and bool(kinds)
    if what == "bare default" or mismatched:
        ordering = tuple(None for _ in kinds)
    default = not kinds or (len(kinds) == 1 and (ordering[0] is None or (kinds[0] == pa.int32() and ordering[0] == 0)))
    gone = what != "row"
    return {
        "key": key,
        "row": None if gone else a_row(data, key, number, ordering),
        "ordering": ordering,
        "default": (default or what == "bare default") and not mismatched,
        "bare": what in ("bare", "bare default", "mismatched"),
        "mismatched": mismatched,
        "columns": None,
    }


def with_partial_rows(data: st.DataObject, versions: list[Version]) -> list[Version]:
    """Some rows of the log become rows of partial blocks: what they do not bring is null."""
    made = []
    for version in versions:
        if version["row"] is not None and data.draw(st.booleans()):
            columns = data.draw(st.sampled_from([frozenset({"n"}), frozenset({"s", "l"}), frozenset({"n", "s"})]))
            columns |= {name for name in version["row"] if name.startswith("t")}
            row = {n: v if n in columns or n.startswith("_") else None for n, v in version["row"].items()}
            version = {**version, "row": row, "columns": columns}
        made.append(version)
    return made


@st.composite
def logs(draw: st.DrawFn, *, partial_blocks: bool = True) -> Log:
    data = draw(st.data())
    case = draw(st.sampled_from(CASES))
    kinds = draw(st.sampled_from([[], [pa.int64()], [pa.int32()], [pa.int64(), pa.int64()]]))
    fields = tuple(f"t{i}" for i in range(len(kinds)))
    zero = bool(kinds) and all(kind == pa.int32() for kind in kinds)
    naive = replace(case.naive, zero_is_default_kind=zero)
    if not kinds:
        naive = replace(naive, compares=False, orders=False)
    stored_keys = draw(st.lists(st.sampled_from(KEYS), unique=True))
    stored = [a_version(data, kinds, key, 0, "row") for key in stored_keys]
    what = st.sampled_from(["row", "row", "row", "delete", "bare", "bare default", "mismatched"])
    versions = [
        a_version(data, kinds, draw(st.sampled_from(KEYS)), number, draw(what))
        for number in range(1, draw(st.integers(0, 9)))
    ]
    if partial_blocks and case.rules.merger is None and draw(st.booleans()):
        versions = with_partial_rows(data, versions)
    return Log(replace(case.rules, ordering_fields=fields), naive, kinds, stored, versions)


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(logs(), st.none() | st.integers(1, 3))
def test_a_log_folds_as_record_by_record(log: Log, batch_rows: int | None) -> None:
    expected = naive_fold(log.naive, log.versions)
    folded = fold(log.rules, log.entries(batch_rows))
    keys = folded.keys.to_pylist()
    assert len(set(keys)) == len(keys)
    assert set(keys) == set(expected)
    for place, key in enumerate(keys):
        version = expected[key]
        assert folded.deletes[place] == (version["row"] is None)
        if version["row"] is None:
            continue
        number = -1 if folded.column_set is None else int(folded.column_set[place])
        brings = None if number < 0 else folded.column_sets[number]
        assert brings == version["columns"]
        row = folded.take(folded.row[place : place + 1], folded.rows.column_names).to_pylist()[0]
        seen = [name for name in row if name.startswith("_") or brings is None or name in brings]
        assert {n: row[n] for n in seen} == {n: version["row"][n] for n in seen}
        if log.rules.orders:
            assert tuple(column[place].as_py() for column in folded.ordering) == version["ordering"]


def in_batches(rows: pa.Table, batch_rows: int) -> pa.Table:
    """The rows in chunks, as a file of batches has them."""
    return pa.Table.from_batches(rows.combine_chunks().to_batches(max_chunksize=batch_rows), rows.schema)


def base_file(rows: list[dict[str, Any]], schema: pa.Schema, group: int) -> ParquetReader:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), sink, row_group_size=group)
    return ParquetReader("base.parquet", pq.ParquetFile(io.BytesIO(sink.getvalue())))


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(logs(), st.integers(1, 3), st.integers(1, 3), st.data())
def test_a_base_file_merges_with_its_log_as_record_by_record(
    log: Log, group: int, batch_rows: int, data: st.DataObject
) -> None:
    expected = naive_slice(log.naive, log.stored, log.versions)
    entries = fold(log.rules, log.entries())
    keys = entries.keys.to_pylist()
    pairs = [(row, keys.index(v["key"])) for row, v in enumerate(log.stored) if v["key"] in keys]
    base_rows, sources = (np.array([pair[i] for pair in pairs], np.int64) for i in range(2))
    reader = base_file([v["row"] for v in log.stored], log.schema, group)
    stored = pa.Table.from_pylist([log.stored[row]["row"] for row in base_rows], log.schema)
    deletes, default = entries.deletes[sources], entries.default_ordering[sources]
    ordering = [column.take(pa.array(sources)) for column in entries.ordering]
    wins = incoming_beats_stored(log.rules, deletes, default, ordering, ordering_columns(log.rules, stored))
    changes = resolve_matches(log.rules, base_rows, sources, deletes, wins, entries.column_set is not None)
    make = entry_replacement(log.rules, entries, changes, log.schema)
    merged = list(merged_batches(reader, log.schema, changes, make, batch_rows=batch_rows))
    assert all(0 < table.num_rows <= batch_rows and table.schema == log.schema for table in merged)
    appended = np.setdiff1d(np.flatnonzero(~entries.deletes), sources)
    found = [row for table in merged for row in table.to_pylist()]
    alone = entries.take(entries.row[appended], log.schema.names).to_pylist()
    assert found == expected[: len(found)]
    assert sorted(alone, key=repr) == sorted(expected[len(found) :], key=repr)
    check_ruled_out_groups(log, reader, changes, make, found, data)


def check_ruled_out_groups(
    log: Log, reader: ParquetReader, changes: Any, make: Any, everything: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Of row groups that a filter rules out only the replaced rows come."""
    groups = reader.num_row_groups
    ruled_out = data.draw(st.sets(st.integers(0, groups - 1))) if groups else set()
    ends = np.cumsum(reader.row_group_rows())
    gone = {
        log.stored[row]["key"]
        for row in range(len(log.stored))
        if int(np.searchsorted(ends, row, side="right")) in ruled_out and row not in changes.replaced
    }
    left = [row for row in everything if row["_hoodie_record_key"] not in gone]
    merged = merged_batches(reader, log.schema, changes, make, replaced_only=ruled_out)
    assert [row for table in merged for row in table.to_pylist()] == left


@pytest.mark.slow
@settings(max_examples=examples(250))
@given(logs(partial_blocks=False), st.data())
def test_rows_of_a_batch_combine_as_record_by_record(log: Log, data: st.DataObject) -> None:
    versions = [version for version in log.versions if not version["bare"]]
    groups = [data.draw(st.integers(0, 1)) for _ in versions]
    batch = replace(log, versions=versions)
    entries, ordering = batch.entries(), batch.ordering(versions)
    rows, deletes = entries.rows, entries.deletes
    codes = np.array(groups, np.int32)
    if log.rules.blends:
        rows, flags, ordering = blend_duplicates(log.rules, entries.keys, codes, rows, deletes, ordering)
        deletes = np.zeros(len(versions), np.bool_) if flags is None else flags
    for group in (0, 1):
        here = np.flatnonzero(codes == group)
        own = [column.take(pa.array(here)) for column in ordering]
        kept = here[
            combine(
                entries.keys.take(pa.array(here)),
                ordering_rank(own, len(here)),
                commit_time_deletes(log.rules, deletes[here], own),
            )
        ]
        expected = naive_fold(log.naive, [versions[row] for row in here])
        assert sorted(entries.keys.take(pa.array(kept)).to_pylist()) == sorted(expected)
        for row in kept:
            version = expected[entries.keys[row].as_py()]
            assert deletes[row] == (version["row"] is None)
            assert version["row"] is None or rows.slice(row, 1).to_pylist() == [version["row"]]


def test_a_partial_row_may_lack_a_column_that_takes_no_nulls() -> None:
    schema = pa.schema(
        [pa.field("k", pa.string(), False), pa.field("n", pa.int64(), False), pa.field("s", pa.string())]
    )
    brought = pa.table({"k": ["a"], "n": pa.array([None], pa.int64()), "s": ["new"]})
    no, sets = np.zeros(1, np.bool_), (frozenset({"s"}),)
    one = np.zeros(1, np.int64)
    entries = LogEntries(pa.array(["a"]), brought, one, no, ~no, (), column_sets=sets, column_set=np.zeros(1, np.int32))
    rules = MergeRules(COMMIT_TIME)
    changes = resolve_matches(rules, one, one, deletes=no, wins=~no, partial=True)
    reader = base_file([{"k": "a", "n": 7, "s": "old"}], schema, 1)
    merged = list(merged_batches(reader, schema, changes, entry_replacement(rules, entries, changes, schema)))
    assert [table.to_pylist() for table in merged] == [[{"k": "a", "n": 7, "s": "new"}]]
    assert merged[0].schema == schema


@pytest.mark.parametrize(
    ("keys", "sets", "expected"),
    [
        (["a", "b"], [0, 0], [{"n": 1, "s": "x"}, {"n": 2, "s": "y"}]),
        (["a", "a"], [0, 1], [{"n": 1, "s": "y"}]),
        (["a", "a"], [1, 1], [{"n": 2, "s": "y"}]),
    ],
)
def test_rows_of_partial_blocks_stay_in_their_mapped_file(
    keys: list[str], sets: list[int], expected: list[dict[str, Any]]
) -> None:
    rows = pa.table({"n": pa.array([1, 2], pa.int64()), "s": ["x", "y"]})
    no, spooled = np.zeros(2, np.bool_), BatchedRows(in_batches(rows, 1), lambda: None)
    provided = (frozenset({"n"}), frozenset({"s"}))
    entries = LogEntries(
        pa.array(keys),
        rows,
        np.arange(2),
        no,
        ~no,
        (),
        column_sets=provided,
        column_set=np.array(sets, np.int32),
        batched=spooled,
    )
    folded = fold(MergeRules(COMMIT_TIME), entries)
    assert folded.batched is spooled
    assert folded.rows is rows
    assert folded.take(folded.row, ["n", "s"]).to_pylist() == expected


def merging(merger: Any) -> LogEntries:
    rows = pa.table({"_hoodie_record_key": ["a", "a"], "n": pa.array([1, 2], pa.int64())})
    no = np.zeros(2, np.bool_)
    entries = LogEntries(rows.column(0).chunk(0), rows, np.arange(2), no, ~no, ())
    return fold(MergeRules(CUSTOM, merger=merger), entries)


def test_a_merger_sees_data_columns_and_the_newer_row_gives_the_meta_columns() -> None:
    seen: list[list[str]] = []

    def merger(older: pa.Table, newer: pa.Table) -> pa.Table:
        seen.append(older.column_names)
        return older

    assert merging(merger).rows.take([0]).to_pylist() == [{"_hoodie_record_key": "a", "n": 1}]
    assert seen == [["n"]]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda older, newer: None, "has to return a pyarrow.Table; it returned NoneType: None"),
        (lambda older, newer: older.to_pylist(), r"returned list: \[\{'n': 1\}\]"),
        (
            lambda older, newer: older.slice(0, 0),
            r"the 1 rows that it received.*returned 0 rows with the columns \['n'",
        ),
        (
            lambda older, newer: older.rename_columns(["m"]),
            r"columns \['n'\].*returned 1 rows with the columns \['m'\]",
        ),
        (lambda older, newer: older.append_column("x", pa.array([1])), r"with the columns \['n', 'x'\]"),
        (lambda older, newer: pa.table({"n": ["1"]}), "column 'n' as string; expected int64"),
        (
            lambda older, newer: older.append_column("_hoodie_is_deleted", pa.array([1])),
            "_hoodie_is_deleted as int64; it has to be boolean",
        ),
    ],
)
def test_a_merger_that_answers_something_else_is_told_what(answer: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        merging(answer)
