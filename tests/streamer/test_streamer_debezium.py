"""Change events of Debezium become rows, and the rows what the database holds."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.streamer.messages import json_rows
from hudi_fast.streamer.sources.source import Fetched
from hudi_fast.streamer.transform import MYSQL, POSTGRES, of_changes, with_payload, without_untyped


def event(op, before, after, place, database="postgres"):
    source = {"name": "shop", "schema": "public", "ts_ms": 1700000000000 + place, "txId": place, "xmin": None}
    if database == "postgres":
        source["lsn"] = place
    else:
        source |= {"file": f"mysql-bin.{1 + place // 100:06}", "pos": place % 100, "row": 0}
    return {"op": op, "ts_ms": 1700000000500, "source": source, "before": before, "after": after}


def batches(events):
    return json_rows([json.dumps(one).encode() for one in events], None, str).to_reader()


def flat(events, columns=POSTGRES):
    return of_changes(columns)(batches(events)).read_all()


def test_changes_of_postgres_have_the_columns_of_apache_hudi():
    rows = flat([event("c", None, {"id": 1, "name": "a"}, 5), event("d", {"id": 1, "name": "a"}, None, 6)])
    assert rows.column_names == [
        "_change_operation_type", "_upstream_event_processed_ts_ms", "db_shard_source_partition",
        "db_schema_source_partition", "_event_origin_ts_ms", "_event_tx_id", "_event_lsn", "_event_xmin", "id", "name",
    ]  # fmt: skip
    first = rows.to_pylist()[0]
    assert (first["_event_lsn"], first["_event_tx_id"], first["_event_xmin"]) == (5, 5, None)
    assert (first["db_shard_source_partition"], first["db_schema_source_partition"]) == ("shop", "public")
    assert rows["name"].to_pylist() == ["a", "a"]
    assert rows.schema.field("_event_xmin").type == pa.int64()


def test_changes_of_mysql_have_one_text_for_their_place():
    rows = flat([event("u", {"id": 1}, {"id": 2}, 3, "mysql"), event("d", {"id": 9}, None, 299, "mysql")], MYSQL)
    assert rows["_event_seq"].to_pylist() == ["000001.3", "000003.99"]
    assert rows["id"].to_pylist() == [2, 9]
    assert rows["_event_row"].type == pa.int32()


def test_a_converter_may_wrap_events_with_their_schema():
    wrapped = {"schema": {"type": "struct"}, "payload": event("r", None, {"id": 3}, 1)}
    assert flat([wrapped])["id"].to_pylist() == [3]


def test_a_column_may_be_null_in_all_rows_before_or_after():
    changes = [event("d", {"id": 1, "name": "a", "tip": None}, None, 1), event("c", None, {"id": 2, "name": None}, 2)]
    assert flat(changes)["name"].to_pylist() == ["a", None]
    changes = [event("d", {"id": 1, "name": None}, None, 1), event("c", None, {"id": 2, "name": "b"}, 2)]
    assert flat(changes)["name"].to_pylist() == [None, "b"]


def test_columns_without_any_value_are_left_out():
    rows = flat([event("c", None, {"id": 1, "name": None, "tip": None}, 1)])
    assert rows.column_names[-3:] == ["id", "name", "tip"]
    kept = without_untyped(rows.to_reader()).read_all()
    assert kept.column_names == rows.column_names[:-2]
    assert kept["id"].to_pylist() == [1]
    assert without_untyped(kept.to_reader()).read_all().equals(kept)


def test_messages_that_are_no_events_are_refused():
    with pytest.raises(hf.InvalidDataError, match=r"are not change events of Debezium: they lack op, source, after"):
        flat([{"id": 1}])


def test_a_change_of_mysql_without_a_place_is_refused():
    broken = event("c", None, {"id": 1}, 1, "mysql")
    broken["source"]["file"] = None
    with pytest.raises(hf.InvalidDataError, match=r"no source\.file or source\.pos"):
        flat([broken], MYSQL)


class Changes:
    """A source of change events: some in each turn."""

    def __init__(self, events, columns, step):
        self._events, self._columns, self._step = events, columns, step

    def fetch(self, position, limit):
        begin = int(position or 0)
        chosen = self._events[begin : begin + self._step]
        if not chosen:
            return Fetched(None, position)
        return Fetched(of_changes(self._columns)(batches(chosen)), str(begin + len(chosen)))

    def committed(self, position):
        pass

    def close(self):
        pass


@st.composite
def histories(draw):
    """Events of a small table, in the order of the database, and its rows at the end."""
    rows, events = {}, []
    for place in range(1, draw(st.integers(1, 14))):
        key = draw(st.integers(0, 3))
        value = draw(st.integers(0, 99))
        old = rows.get(key)
        if old is not None and draw(st.booleans()):
            events.append(("d", {"id": key, "v": old}, None, place))
            del rows[key]
        else:
            before = None if old is None else {"id": key, "v": old}
            events.append(("c" if old is None else "u", before, {"id": key, "v": value}, place))
            rows[key] = value
    return events, rows


@pytest.mark.parametrize(
    ("kind", "version", "database"),
    [
        ("MERGE_ON_READ", "9", "postgres"),
        pytest.param("COPY_ON_WRITE", "9", "mysql", marks=pytest.mark.slow),
        pytest.param("COPY_ON_WRITE", "9", "postgres", marks=pytest.mark.slow),
        pytest.param("MERGE_ON_READ", "9", "mysql", marks=pytest.mark.slow),
    ],
)
@given(histories(), st.integers(1, 5))
def test_the_table_holds_what_the_database_holds(tmp_path_factory, kind, version, database, history, step):
    events, rows = history
    columns = POSTGRES if database == "postgres" else MYSQL
    path = tmp_path_factory.mktemp("changes") / "t"
    given_ = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
        "hoodie.metadata.enable": "false",
    }
    given_ = with_payload(given_, columns, int(version))
    if not events:
        return
    source = Changes([event(*one, database) for one in events], columns, step)
    stream = hf.Streamer(given_, source=source, target_base_path=str(path))
    while next(stream.run()).position != str(len(events)):
        pass
    found = hf.read(path, columns=["id", "v"]).to_pylist()
    assert {row["id"]: row["v"] for row in found} == rows
    assert len(found) == len(rows)
