"""Copy-on-write tables of Apache Hudi are read as Apache Hudi reads them, or refused."""

from __future__ import annotations

from collections.abc import Callable

import hudi
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from tests.support.golden import Golden, golden_names
from tests.support.rows import assert_same_rows

COW = [*golden_names("cow_"), *golden_names("h015_cow")]
HUDI_RS = golden_names("hudi_rs/cow")

Unzip = Callable[[str], Golden]


def key_of(rows: pa.Table) -> list[str] | None:
    return None if "_hoodie_record_key" in rows.column_names else ["id"]


def as_spark_shows_it(name: str, rows: pa.Table) -> pa.Table:
    """Spark turns the partition column of a timestamp key generator into text; the stored number is the same."""
    if name != "cow_v9_timestamp_keygen":
        return rows
    return rows.set_column(rows.column_names.index("ts"), "ts", pc.cast(rows["ts"], pa.string()))


def test_there_are_tables() -> None:
    assert len(COW) == 16
    assert len(HUDI_RS) == 17


@pytest.mark.parametrize("name", COW)
def test_a_snapshot_holds_the_rows_that_apache_hudi_answers(name: str, golden: Unzip) -> None:
    table = golden(name)
    wanted = table.snapshot()
    rows = as_spark_shows_it(name, hf.HudiTable.open(table.table).to_arrow())
    assert rows.num_rows == table.expected["rows"]
    assert sorted(rows.column_names) == sorted(wanted.column_names)
    assert_same_rows(rows, wanted, ignore=(), key=key_of(wanted))
    streamed = hf.HudiTable.open(table.table).to_batches().read_all()
    assert_same_rows(as_spark_shows_it(name, streamed), wanted, ignore=(), key=key_of(wanted))


@pytest.mark.parametrize("name", COW)
def test_time_travel_answers_or_refuses_as_apache_hudi_does(name: str, golden: Unzip) -> None:
    table = golden(name)
    opened, moment = hf.HudiTable.open(table.table), table.expected["as_of"]
    if "as_of_error" in table.expected:
        assert "Cleaner cleaned up" in table.expected["as_of_error"]
        with pytest.raises(hf.ConfigError, match="Cleaner cleaned up the timestamp of interest"):
            opened.to_arrow(as_of=moment)
        return
    wanted = table.answer("as_of")
    assert_same_rows(as_spark_shows_it(name, opened.to_arrow(as_of=moment)), wanted, ignore=(), key=key_of(wanted))


@pytest.mark.parametrize("name", HUDI_RS)
def test_a_snapshot_holds_the_rows_that_hudi_rs_reads(name: str, golden: Unzip) -> None:
    table = golden(name)
    batches = hudi.HudiTable(str(table.table)).read()
    rows = hf.HudiTable.open(table.table).to_arrow()
    if not batches:
        assert rows.num_rows == 0
        return
    wanted = pa.Table.from_batches(batches)
    assert_same_rows(rows, wanted, ignore=(), key=key_of(wanted))


@pytest.mark.parametrize("name", ["cow_v6_mixed", "cow_v9_mixed", "cow_v9_clustered", "h015_cow_archived"])
def test_every_instant_of_the_past_can_be_looked_at(name: str, golden: Unzip) -> None:
    """At the first commit there are only rows of that commit; at the last one the snapshot."""
    opened = hf.HudiTable.open(golden(name).table)
    history = opened.history().filter(pc.is_in(pc.field("action"), pa.array(["commit", "replacecommit"])))
    seen = []
    for instant in history["instant"].to_pylist():
        try:
            rows = opened.to_arrow(as_of=instant)
        except hf.ConfigError:  # cleaned
            assert not seen
            continue
        assert pc.max(rows["_hoodie_commit_time"]).as_py() <= instant
        seen.append(rows)
    assert_same_rows(seen[-1], opened.to_arrow(), ignore=())
    assert len(seen) > 1
