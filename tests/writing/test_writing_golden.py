"""Tables of Apache Hudi are written on: the rows are those of a merge by hand, and what is not touched stays."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from tests.support.golden import Golden, golden_names
from tests.support.metadata_checks import assert_metadata_true
from tests.support.rows import assert_same_rows
from tests.writing.golden_rows import changed_rows, key_and_place, merged_by_hand, needed, untouched_keep_their_commit

Unzip = Callable[[str], Golden]

COW = [name for name in (*golden_names("cow_"), *golden_names("h015_cow")) if name != "cow_v9_cdc"]
TEXT_AS_NUMBER = "hudi_rs/cow_v9_timebasedkeygen_unixtimestamp"
LACKS_A_KEY = "hudi_rs/cow_v9_timebasedkeygen_nonhivestyle"
"""Its record index does not know one of its keys: Apache Hudi deleted the key in another partition."""

HUDI_RS = [name for name in golden_names("hudi_rs/cow") if "empty" not in name and name != TEXT_AS_NUMBER]


def data_of(table: pa.Table) -> pa.Table:
    return table.select([name for name in table.column_names if not name.startswith("_hoodie_")])


def write_quietly(opened: hf.HudiTable, rows: pa.Table, operation: str) -> tuple[hf.WriteResult, list[str]]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = opened.write(rows, operation, needed(opened))
    assert all(issubclass(each.category, hf.HudiWarning) for each in told)
    return result, [str(each.message) for each in told]


@pytest.mark.slow(
    but=(
        "cow_v6_mixed",
        "cow_v9_mixed",
        "cow_v9_clustered",
        "cow_v9_nometa",
        "cow_v9_schema_evolved",
        "h015_cow_record_index",
        "hudi_rs/cow_v8_complexkeygen_hivestyle",
        "hudi_rs/cow_v9_txns_nonpart_meta",
    )
)
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


def test_numbers_that_a_table_keeps_as_text_stay_in_their_partitions(golden: Unzip) -> None:
    """SQL of Apache Hudi made text of a column that its key generator takes numbers from."""
    opened = hf.HudiTable.open(golden(TEXT_AS_NUMBER).table)
    places = ["_hoodie_partition_path", "_hoodie_record_key", "ts_epoch"]
    before = opened.to_arrow()
    result = opened.upsert(data_of(before))
    assert (result.inserts, result.updates) == (0, before.num_rows)
    assert_same_rows(opened.to_arrow().select(places), before.select(places))


def test_a_table_with_change_data_goes_on_logging_changes(golden: Unzip) -> None:
    opened = hf.HudiTable.open(golden("cow_v9_cdc").table)
    before = opened.history()["instant"][-1].as_py()
    rows = opened.to_arrow()
    opened.delete(data_of(rows.slice(0, 1)))
    (change,) = opened.cdc(before).to_pylist()
    assert (change["op"], change["after"]) == ("d", "null")
    assert opened.to_arrow().num_rows == rows.num_rows - 1
