"""Tables of Apache Hudi are written on: the rows are those of a merge by hand, and what is not touched stays."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from tests.support.golden import Golden, golden_names
from tests.support.metadata_checks import assert_metadata_true
from tests.support.rows import assert_same_rows
from tests.support.small_tables import listing

Unzip = Callable[[str], Golden]

COW = [name for name in (*golden_names("cow_"), *golden_names("h015_cow")) if name != "cow_v9_cdc"]
TEXT_AS_NUMBER = "hudi_rs/cow_v9_timebasedkeygen_unixtimestamp"
LACKS_A_KEY = "hudi_rs/cow_v9_timebasedkeygen_nonhivestyle"
"""Its record index does not know one of its keys: Apache Hudi deleted the key in another partition."""

HUDI_RS = [name for name in golden_names("hudi_rs/cow") if "empty" not in name and name != TEXT_AS_NUMBER]


def data_of(table: pa.Table) -> pa.Table:
    return table.select([name for name in table.column_names if not name.startswith("_hoodie_")])


def needed(opened: hf.HudiTable) -> dict[str, str]:
    """A table knows its settings itself, but for one that an old release did not store."""
    kind = "hoodie.keygen.timebased.timestamp.type"
    lacks = opened.config.key_generator == "TIMESTAMP" and kind not in opened.config.keygen_properties
    return {kind: "DATE_STRING"} if lacks else {}


def key_and_place(opened: hf.HudiTable, rows: pa.Table) -> list[tuple[Any, ...]]:
    """What identifies a row: the key columns, and the partition columns, for keys are unique per partition."""
    config = opened.config
    names = [*config.record_key_fields, *config.partition_fields]
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))


def ordering(opened: hf.HudiTable, row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] if row[name] is not None else 0 for name in opened.config.ordering_fields)


def changed_rows(opened: hf.HudiTable, rows: pa.Table) -> pa.Table:
    """Every second row with other numbers: a third of them older than what is stored, and three new ones."""
    picked = rows.take(pa.array(range(0, rows.num_rows, 2))).to_pylist()
    special = {*opened.config.record_key_fields, *opened.config.partition_fields}
    numbers = [
        field.name
        for field in rows.schema
        if field.name not in special and (pa.types.is_integer(field.type) or pa.types.is_floating(field.type))
    ]
    shift = 0
    for shift, row in enumerate(picked):
        for name in numbers:
            if row[name] is not None:
                row[name] += -5 if shift % 3 == 0 and name in opened.config.ordering_fields else 7
    key = opened.config.record_key_fields[0]
    for number, row in enumerate([dict(row) for row in picked[:3]]):
        row[key] = f"new{number}" if isinstance(row[key], str) else 900_000 + number
        picked.append(row)
    return pa.Table.from_pylist(picked, rows.schema)


def merged_by_hand(opened: hf.HudiTable, stored: pa.Table, incoming: pa.Table) -> pa.Table:
    """A few of the tables hold keys twice; an update then changes all rows with its key."""
    by_time = opened.config.merge_mode == "EVENT_TIME_ORDERING"
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for key, row in zip(key_and_place(opened, incoming), incoming.to_pylist(), strict=True):
        if key not in best or not by_time or ordering(opened, row) >= ordering(opened, best[key]):
            best[key] = row
    merged, seen = [], set()
    for key, row in zip(key_and_place(opened, stored), stored.to_pylist(), strict=True):
        seen.add(key)
        wins = key in best and (not by_time or ordering(opened, best[key]) >= ordering(opened, row))
        merged.append(best[key] if wins else row)
    return pa.Table.from_pylist(merged + [row for key, row in best.items() if key not in seen], stored.schema)


def write_quietly(opened: hf.HudiTable, rows: pa.Table, operation: str) -> tuple[hf.WriteResult, list[str]]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = opened.write(rows, operation, needed(opened))
    assert all(issubclass(each.category, hf.HudiWarning) for each in told)
    return result, [str(each.message) for each in told]


@pytest.mark.parametrize("name", [*COW, *HUDI_RS])
def test_upserts_and_deletes_continue_a_table_of_apache_hudi(name: str, golden: Unzip) -> None:
    table = golden(name)
    opened = hf.HudiTable.open(table.table)
    before = opened.to_arrow()
    stored = data_of(before)
    version, had_metadata = opened.version, set(opened.config.metadata_partitions)
    incoming = changed_rows(opened, stored)
    wanted = merged_by_hand(opened, stored, incoming)
    result, told = write_quietly(opened, incoming, "upsert")
    assert told == []
    assert had_metadata <= set(assert_metadata_true(table.table, locations=name != LACKS_A_KEY))
    assert_same_rows(data_of(opened.to_arrow()), wanted, ignore=(), key=list(stored.column_names[:1]))
    assert result.inserts == wanted.num_rows - stored.num_rows
    assert opened.version == version
    untouched_keep_their_commit(opened, before, result.instant)
    gone = wanted.slice(0, wanted.num_rows // 2)
    keys = set(key_and_place(opened, gone))
    left = [row for row, key in zip(wanted.to_pylist(), key_and_place(opened, wanted), strict=True) if key not in keys]
    result, told = write_quietly(opened, gone, "delete")
    assert told == []
    assert had_metadata <= set(assert_metadata_true(table.table, locations=name != LACKS_A_KEY))
    assert result.deletes == wanted.num_rows - len(left)
    rest = data_of(opened.to_arrow())
    assert_same_rows(rest, pa.Table.from_pylist(left, wanted.schema), ignore=(), key=list(stored.column_names[:1]))
    assert_same_rows(data_of(opened.to_arrow(as_of=last_write_before(opened, 2))), stored, ignore=())


def last_write_before(opened: hf.HudiTable, back: int) -> str:
    history = opened.history().filter(pc.is_in(pc.field("action"), pa.array(["commit", "replacecommit"])))
    return history["instant"].to_pylist()[-1 - back]


def untouched_keep_their_commit(opened: hf.HudiTable, before: pa.Table, instant: str) -> None:
    if not opened.config.populate_meta_fields:
        return
    kept = ["_hoodie_partition_path", "_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno"]
    after = opened.to_arrow(columns=kept)
    old = set(zip(*(before[name].to_pylist() for name in kept), strict=True))
    new = set(zip(*(after[name].to_pylist() for name in kept), strict=True))
    assert {row for row in new if row[2] != instant} == new & old
    assert new & old


@pytest.mark.parametrize("name", ["hudi_rs/cow_v6_empty", "hudi_rs/cow_v8_empty"])
def test_a_table_that_apache_hudi_left_empty_takes_rows(name: str, golden: Unzip) -> None:
    opened = hf.HudiTable.open(golden(name).table)
    schema = opened.schema
    values = {"id": 1, "name": "Ann", "isActive": True, "structField": None}
    row = {field.name: values.get(field.name) for field in schema}
    rows = pa.Table.from_pylist([row], schema)
    result, _ = write_quietly(opened, rows, "upsert")
    assert result.inserts == 1
    assert_same_rows(data_of(opened.to_arrow()), rows, ignore=(), key=["id"])


def test_times_that_a_table_keeps_as_text_against_its_own_settings_are_refused(golden: Unzip) -> None:
    """SQL of Apache Hudi made text of a column that its key generator takes numbers from."""
    table = golden(TEXT_AS_NUMBER)
    opened = hf.HudiTable.open(table.table)
    before = listing(table.table)
    with pytest.raises(hf.ConfigError, match="'ts_epoch' is a string"):
        opened.upsert(data_of(opened.to_arrow()))
    assert listing(table.table) == before


def test_a_table_with_change_data_goes_on_logging_changes(golden: Unzip) -> None:
    opened = hf.HudiTable.open(golden("cow_v9_cdc").table)
    before = opened.history()["instant"][-1].as_py()
    rows = opened.to_arrow()
    opened.delete(data_of(rows.slice(0, 1)))
    (change,) = opened.cdc(before).to_pylist()
    assert (change["op"], change["after"]) == ("d", "null")
    assert opened.to_arrow().num_rows == rows.num_rows - 1
