"""Files of a folder become the rows of turns, each file once."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.errors import ConfigError, InvalidDataError, SourceError, UnsupportedFeatureError
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.streamer.sources import folder as module
from hudi_fast.streamer.sources.folder import FOLDER_FORMATS, FolderSource
from tests.support.examples import examples

T0 = 1_700_000_000_000
"""A modification time in milliseconds, long ago."""


def put(path: Path, data: str | bytes, time_ms: int = T0) -> Path:
    """Write a file that was modified at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))
    return path


def lines(*rows: dict[str, Any]) -> str:
    return "\n".join(json.dumps(row) for row in rows) + "\n"


def source(path: Path, kind: str = "json", **given: Any) -> FolderSource:
    return FolderSource(Storage(path), kind, **given)


def rows_of(path: Path, kind: str = "json", **given: Any) -> list[dict[str, Any]]:
    """The rows of all files of a folder."""
    rows = source(path, kind, **given).fetch(None, None).rows
    return rows.read_all().to_pylist()


def turns(path: Path, limit: int | None = None, position: str | None = None) -> list[list[int]]:
    """The values of ``n`` turn by turn, until nothing is new."""
    made = []
    while (fetched := source(path).fetch(position, limit)).rows is not None:
        made.append(fetched.rows.read_all()["n"].to_pylist())
        assert fetched.position != position
        position = fetched.position
    assert fetched.position == position
    return made


def avro_file(path: Path, fields: list[dict[str, Any]], rows: list[dict[str, Any]], codec: str = "null") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as sink:
        fastavro.writer(sink, {"type": "record", "name": "r", "fields": fields}, rows, codec=codec)
    os.utime(path, ns=(T0 * 1_000_000, T0 * 1_000_000))


def write(kind: str, path: Path, rows: list[dict[str, Any]], time_ms: int = T0) -> None:
    """Rows of ``n`` and ``s`` as a file of a format."""
    table = pa.Table.from_pylist(rows, pa.schema([("n", pa.int64()), ("s", pa.string())]))
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "orc":
        orc.write_table(table, path)
    elif kind == "json":
        path.write_text(lines(*rows), encoding="utf-8")
    elif kind == "csv":
        path.write_text("n,s\n" + "".join(f"{row['n']},{row['s']}\n" for row in rows), encoding="utf-8")
    else:
        avro_file(path, [{"name": "n", "type": "long"}, {"name": "s", "type": "string"}], rows)
    os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))


INFERRED = {"csv": {"header": "true", "inferSchema": "true"}}


# ---- formats


@pytest.mark.parametrize("kind", FOLDER_FORMATS)
def test_files_of_each_format_are_read_in_the_order_of_their_times(tmp_path, kind):
    for number in (3, 1, 2):
        rows = [{"n": 10 * number + each, "s": f"é{each}"} for each in range(2)]
        write(kind, tmp_path / f"{9 - number}.{kind}", rows, T0 + number)
    given = INFERRED if kind == "csv" else {}
    fetched = source(tmp_path, kind, **given).fetch(None, None)
    made = fetched.rows.read_all()
    assert made.schema == pa.schema([("n", pa.int64()), ("s", pa.string())])
    assert made["n"].to_pylist() == [10, 11, 20, 21, 30, 31]
    assert made["s"].to_pylist() == ["é0", "é1"] * 3
    assert fetched.position == str(T0 + 3)
    assert list(fetched.lag.values()) == [0]


@pytest.mark.parametrize("kind", FOLDER_FORMATS)
def test_an_unreadable_file_is_named(tmp_path, kind):
    write(kind, tmp_path / "good", [{"n": 1, "s": "x"}])
    put(tmp_path / "sub" / "broken", b'\xff\xfe{]1,2\n1,2,3\n"', T0 + 1)
    with pytest.raises((InvalidDataError, SourceError), match="sub/broken"):
        source(tmp_path, kind).fetch(None, None)


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_a_file_that_is_cut_off_is_named(tmp_path, kind):
    write(kind, tmp_path / "whole", [{"n": n, "s": "x" * 50} for n in range(50)])
    put(tmp_path / "half", (tmp_path / "whole").read_bytes()[:-40], T0 + 1)
    with pytest.raises((InvalidDataError, SourceError), match="/half"):
        source(tmp_path, kind).fetch(None, None)


def test_a_file_whose_values_are_damaged_is_named_when_they_are_read(tmp_path):
    write("parquet", tmp_path / "f.parquet", [{"n": n, "s": str(n)} for n in range(1000)])
    data = bytearray((tmp_path / "f.parquet").read_bytes())
    data[4:400] = bytes(396)
    put(tmp_path / "f.parquet", bytes(data))
    fetched = source(tmp_path, "parquet").fetch(None, None)
    with pytest.raises(SourceError, match=r"f\.parquet cannot be read"):
        fetched.rows.read_all()


def test_a_file_that_vanishes_is_named_in_an_error_that_is_tried_again(tmp_path, monkeypatch):
    put(tmp_path / "gone.json", lines({"n": 1}))
    listed = Storage.list_dir

    def list_dir(*given, **named):
        found = listed(*given, **named)
        (tmp_path / "gone.json").unlink()
        return found

    monkeypatch.setattr(Storage, "list_dir", list_dir)
    with pytest.raises(SourceError, match=r"gone\.json") as caught:
        source(tmp_path).fetch(None, None)
    assert isinstance(caught.value, OSError)


def test_an_unknown_format_is_refused():
    with pytest.raises(ConfigError, match="Expected files of parquet, json, csv, avro, orc; found 'xml'"):
        FolderSource(Storage("/nowhere"), "xml")


# ---- which files


def test_a_folder_that_does_not_exist_or_is_a_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="/none of the stream does not exist"):
        source(tmp_path / "none").fetch(None, None)
    with pytest.raises(ConfigError, match="/file of the stream does not exist"):
        source(put(tmp_path / "file", "{}")).fetch(None, None)


def test_an_empty_folder_has_nothing_and_keeps_the_position(tmp_path):
    for position in (None, str(T0)):
        fetched = source(tmp_path).fetch(position, None)
        assert (fetched.rows, fetched.position) == (None, position)


def test_files_of_folders_below_are_read_and_empty_and_hidden_ones_are_not(tmp_path):
    for name in ("a.json", "dt=1/b.json", "x/y/c.json"):
        put(tmp_path / name, lines({"n": name}))
    for name in ("_SUCCESS", ".d.json", "_temporary/0/e.json", "x/.staging/f.json", ".hoodie/g.json"):
        put(tmp_path / name, lines({"n": name}))
    put(tmp_path / "empty.json", "")
    assert turns(tmp_path) == [["a.json", "dt=1/b.json", "x/y/c.json"]]


def test_a_position_is_the_time_of_the_newest_file_and_older_files_are_not_read_again(tmp_path):
    for number in range(4):
        put(tmp_path / f"{number}.json", lines({"n": number}), T0 + number)
    assert turns(tmp_path) == [[0, 1, 2, 3]]
    assert turns(tmp_path, position=str(T0 + 1)) == [[2, 3]]
    assert turns(tmp_path, position=str(T0 + 3)) == []
    assert turns(tmp_path, position=str(-(2**63))) == [[0, 1, 2, 3]]


def test_new_files_are_read_in_the_next_turn(tmp_path):
    put(tmp_path / "1.json", lines({"n": 1}))
    first = source(tmp_path).fetch(None, None)
    put(tmp_path / "0.json", lines({"n": 2}), T0 + 1)
    assert turns(tmp_path, position=first.position) == [[2]]


@pytest.mark.parametrize("position", ["topic,0:5", "", "20240101T000000", "1.5"])
def test_a_position_of_another_source_is_refused_with_what_to_do(tmp_path, position):
    with pytest.raises(ConfigError, match=r"is not a modification time in milliseconds.*--ignore-checkpoint") as caught:
        source(tmp_path).fetch(position, None)
    assert repr(position) in str(caught.value)


def test_the_same_position_gives_the_same_rows(tmp_path):
    for number in range(5):
        put(tmp_path / f"{number}.json", lines({"n": number}), T0 + number)
    one, two = (source(tmp_path).fetch(str(T0), 30) for _ in range(2))
    assert one.rows.read_all() == two.rows.read_all()
    assert (one.position, one.lag) == (two.position, two.lag)


# ---- limits


def test_a_turn_ends_before_the_file_that_reaches_the_limit(tmp_path):
    for number in range(5):
        put(tmp_path / f"{number}.json", f'{{"n": {number}}}'.ljust(100), T0 + number)
    assert turns(tmp_path, 100) == [[0], [1], [2], [3], [4]]
    assert turns(tmp_path, 250) == [[0, 1], [2, 3], [4]]
    assert turns(tmp_path, 10_000) == [[0, 1, 2, 3, 4]]
    assert list(source(tmp_path).fetch(None, 250).lag.values()) == [3]


@pytest.mark.parametrize("limit", [0, 1])
def test_a_file_above_the_limit_is_a_turn_of_its_own(tmp_path, limit):
    for number in range(3):
        put(tmp_path / f"{number}.json", lines({"n": number}), T0 + number)
    assert turns(tmp_path, limit) == [[0], [1], [2]]


def test_files_of_one_time_stay_together_whatever_the_limit(tmp_path):
    for number, time_ms in enumerate([0, 1, 1, 1, 2]):
        put(tmp_path / f"{number}.json", lines({"n": number}), T0 + time_ms)
    assert turns(tmp_path, 1) == [[0], [1, 2, 3], [4]]


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 50)), max_size=12), st.none() | st.integers(0, 120))
def test_turns_of_any_size_give_each_file_once_in_the_order_of_times(files, limit):
    listed = [FileStat(f"{at:02}.json", size, T0 + late, False) for at, (late, size) in enumerate(files)]
    waiting, given = sorted(listed, key=lambda one: (one.modified_ms, one.path)), []
    while rest := [one for one in waiting if not given or one.modified_ms > given[-1].modified_ms]:
        chosen = module._chosen(rest, limit)
        assert chosen == rest[: len(chosen)]
        sizes = sum(one.size for one in chosen if one.modified_ms != chosen[-1].modified_ms)
        assert limit is None or sizes < max(limit, 1)
        given += chosen
    assert given == waiting


# ---- files that are being written


def test_a_young_file_waits_until_it_is_complete(tmp_path):
    put(tmp_path / "old.json", lines({"n": 1}))
    young = put(tmp_path / "young.json", lines({"n": 2}), int(time.time() * 1000) + 3_600_000)
    fetched = source(tmp_path, settle_seconds=0.01).fetch(None, None)
    assert fetched.rows.read_all()["n"].to_pylist() == [1]
    assert fetched.position == str(T0)
    os.utime(young, ns=((T0 + 1) * 1_000_000, (T0 + 1) * 1_000_000))
    assert turns(tmp_path, position=fetched.position) == [[2]]


def test_a_turn_waits_once_for_a_file_that_was_just_written(tmp_path):
    (tmp_path / "new.json").write_text(lines({"n": 1}))
    started = time.monotonic()
    fetched = FolderSource(Storage(tmp_path), "json", settle_seconds=0.1).fetch(None, None)
    if fetched.rows is None:  # clocks of files and processes may differ by a tick
        fetched = FolderSource(Storage(tmp_path), "json", settle_seconds=0.1).fetch(None, None)
    assert time.monotonic() - started >= 0.09
    assert fetched.rows.read_all()["n"].to_pylist() == [1]


def test_a_file_that_grows_during_the_wait_is_read_when_it_has_stopped_growing(tmp_path, monkeypatch):
    path = put(tmp_path / "f.json", lines({"n": 1}), int(time.time() * 1000))

    def grow(seconds):
        put(path, lines({"n": 1}, {"n": 2}), int(time.time() * 1000) + 60_000)

    monkeypatch.setattr(time, "sleep", grow)
    assert source(tmp_path).fetch(None, None).rows is None
    put(path, lines({"n": 1}, {"n": 2}))
    assert turns(tmp_path) == [[1, 2]]


def test_files_of_one_time_are_complete_at_the_same_moment(tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        put(tmp_path / f"{name}.json", lines({"n": 1}))
    clock = iter(T0 / 1000 + 0.9999 + tick / 10_000 for tick in range(100))  # a call of the clock takes 0.1 ms
    monkeypatch.setattr(time, "time", lambda: next(clock))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    assert source(tmp_path).fetch(None, None).rows.read_all().num_rows == 3


# ---- columns of several files


def test_the_columns_are_those_of_all_files_of_a_turn(tmp_path):
    put(tmp_path / "1.json", lines({"a": 1}), T0)
    put(tmp_path / "2.json", lines({"b": "x", "c": {"d": 1}}), T0 + 1)
    put(tmp_path / "3.json", lines({"c": {"e": True}, "a": 3}), T0 + 2)
    assert rows_of(tmp_path) == [
        {"a": 1, "b": None, "c": None},
        {"a": None, "b": "x", "c": {"d": 1, "e": None}},
        {"a": 3, "b": None, "c": {"d": None, "e": True}},
    ]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5], pa.float64()),
        ([2.5, 1], pa.float64()),
        ([None, "x"], pa.string()),
        ([1, None], pa.int64()),
        ([[], [1]], pa.list_(pa.int64())),
        (["2024-01-01", "later"], pa.string()),
        (["2024-01-01 10:00:00", "2024-01-01T10:00:00Z"], pa.string()),
    ],
)
def test_a_column_of_several_types_has_the_widest(tmp_path, values, kind):
    for at, value in enumerate(values):
        put(tmp_path / f"{at}.json", lines({"a": value}), T0 + at)
    made = source(tmp_path).fetch(None, None).rows.read_all()
    assert made["a"].type == kind
    assert made["a"].to_pylist() == values


def test_types_that_do_not_fit_are_refused_with_column_and_files_and_what_to_do(tmp_path):
    for at, value in enumerate([1, 2.5, "x", 4]):
        put(tmp_path / f"f{at}.json", lines({"a": value}), T0 + at)
    with pytest.raises(InvalidDataError, match=r"f0.json, f1.json, f2.json \.\.\.\).*Field a .*Give a schema: hoodie"):
        source(tmp_path).fetch(None, None)


def test_integers_of_files_of_different_width_are_the_wider_ones(tmp_path):
    for at, kind in enumerate([pa.int32(), pa.int64(), pa.int32()]):
        pq.write_table(pa.table({"a": pa.array([at, None], kind)}), tmp_path / f"{at}.parquet")
        os.utime(tmp_path / f"{at}.parquet", (T0 // 1000, T0 // 1000))
    made = source(tmp_path, "parquet").fetch(None, None).rows.read_all()
    assert made["a"].type == pa.int64()
    assert made["a"].to_pylist() == [0, None, 1, None, 2, None]


def test_required_columns_of_one_file_may_be_missing_in_another(tmp_path):
    required = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"a": [1]}, required), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": [2]}), tmp_path / "2.parquet")
    for path in tmp_path.iterdir():
        os.utime(path, (T0 // 1000, T0 // 1000))
    assert rows_of(tmp_path, "parquet") == [{"a": 1, "b": None}, {"a": None, "b": 2}]


# ---- a schema


SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string()), ("new", pa.float64())])


@pytest.mark.parametrize("kind", FOLDER_FORMATS)
def test_a_schema_decides_columns_and_types_of_each_format(tmp_path, kind):
    write(kind, tmp_path / "f", [{"n": 1, "s": "x"}, {"n": 2, "s": "y"}])
    given = INFERRED if kind == "csv" else {}
    made = source(tmp_path, kind, schema=SCHEMA, **given).fetch(None, None).rows.read_all()
    assert made.schema == SCHEMA
    assert made.to_pylist() == [{"n": 1, "s": "x", "new": None}, {"n": 2, "s": "y", "new": None}]
    narrow = source(tmp_path, kind, schema=SCHEMA.remove(0), **given).fetch(None, None).rows.read_all()
    assert narrow.column_names == ["s", "new"]


@pytest.mark.parametrize("kind", FOLDER_FORMATS)
def test_a_file_that_does_not_fit_the_schema_is_named(tmp_path, kind):
    write(kind, tmp_path / "good", [{"n": 1, "s": "2"}], T0)
    write(kind, tmp_path / "bad", [{"n": 1, "s": "x"}], T0 + 1)
    schema = pa.schema([("n", pa.int64()), ("s", pa.int64())])
    given = INFERRED if kind == "csv" else {}
    with pytest.raises(InvalidDataError, match=r"/good|/bad"):
        source(tmp_path, kind, schema=schema, **given).fetch(None, None).rows.read_all()


@pytest.mark.parametrize("kind", FOLDER_FORMATS)
def test_a_file_without_a_required_column_is_named(tmp_path, kind):
    write(kind, tmp_path / "f", [{"n": 1, "s": "x"}])
    schema = pa.schema([("n", pa.int64()), pa.field("key", pa.int64(), nullable=False)])
    given = INFERRED if kind == "csv" else {}
    with pytest.raises(InvalidDataError, match=r"(?s)/f.*key"):
        source(tmp_path, kind, schema=schema, **given).fetch(None, None).rows.read_all()


# ---- JSON


@pytest.mark.parametrize("text", ["\n", "  \n\t\n", "\r\n"])
def test_a_file_of_blank_lines_has_no_rows(tmp_path, text):
    put(tmp_path / "blank.json", text)
    assert rows_of(tmp_path) == []
    put(tmp_path / "full.json", lines({"n": 1}), T0 + 1)
    assert rows_of(tmp_path) == [{"n": 1}]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\n \n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_lines_end_in_any_way_and_a_mark_may_begin_the_file(tmp_path, end, mark):
    put(tmp_path / "f.json", mark + end.join(['{"n": 1}', ' {"n": 2} ', '{"n": "é"}'][:2]).encode())
    assert rows_of(tmp_path) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("bad", ["[1]", "null", '"x"', "{", '{"n": 1}{"n": 2}', '{"n": 1,}', "nope"])
def test_a_line_that_is_no_object_is_named_by_file_and_number(tmp_path, bad):
    put(tmp_path / "f.json", f'{{"n": 1}}\n{{"n": 2}}\n{bad}\n{{"n": 4}}\n')
    with pytest.raises(InvalidDataError, match=r"/f\.json, object 3: expected a JSON object"):
        source(tmp_path).fetch(None, None)


# ---- CSV


HEADER = {"header": "true"}


def csv_rows(path: Path, text: str | bytes, schema: pa.Schema | None = None, **given: str) -> list[dict[str, Any]]:
    put(path / "f.csv", text)
    return rows_of(path, "csv", csv=given, schema=schema)


def test_values_are_texts_and_columns_have_numbers_unless_options_say_otherwise(tmp_path):
    assert csv_rows(tmp_path, "1,x\n2,y\n") == [{"_c0": "1", "_c1": "x"}, {"_c0": "2", "_c1": "y"}]
    assert csv_rows(tmp_path, "a,b\n01,x\n", **HEADER) == [{"a": "01", "b": "x"}]


def test_types_are_inferred_on_demand(tmp_path):
    made = csv_rows(tmp_path, "a,b,c,d\n1,1.5,x,true\n,,,\n", header="true", inferSchema="TRUE")
    assert made == [{"a": 1, "b": 1.5, "c": "x", "d": True}, {"a": None, "b": None, "c": None, "d": None}]


def test_a_schema_gives_types_and_without_a_header_names(tmp_path):
    schema = pa.schema([("b", pa.decimal128(5, 2)), ("a", pa.date32())])
    expected = [{"b": Decimal("1.50"), "a": date(2024, 1, 2)}]
    assert csv_rows(tmp_path, "a,b\n2024-01-02,1.5\n", schema, **HEADER) == expected
    assert csv_rows(tmp_path, "1.5,2024-01-02\n", schema) == expected
    with pytest.raises(InvalidDataError, match=r"f\.csv cannot be read as CSV"):
        csv_rows(tmp_path, "1.5\n", schema)


def test_quotes_hold_separators_and_quotes_and_line_ends(tmp_path):
    made = csv_rows(tmp_path, 'a,b\n"x,y","say ""hi"""\n"two\nlines",z\n', **HEADER)
    assert made == [{"a": "x,y", "b": 'say "hi"'}, {"a": "two\nlines", "b": "z"}]


def test_line_ends_in_quotes_hold_wherever_the_file_is_cut_into_blocks(tmp_path):
    values = [f"{at}\n," * (at % 7) for at in range(60_000)]
    text = "".join(f'{at},"{value}"\n' for at, value in enumerate(values))
    assert len(text) > 1 << 20
    put(tmp_path / "f.csv", text)
    made = source(tmp_path, "csv").fetch(None, None).rows.read_all()
    assert made["_c1"].to_pylist() == values


def test_an_empty_value_is_null_and_an_empty_text_in_quotes_is_none(tmp_path):
    made = csv_rows(tmp_path, 'a,b,c\n,"",x\n', **HEADER)
    assert made == [{"a": None, "b": "", "c": "x"}]


def test_the_word_for_null_can_be_chosen(tmp_path):
    assert csv_rows(tmp_path, "a,b\nNA,1\nx,2\n", nullValue="NA", **HEADER) == [
        {"a": None, "b": "1"},
        {"a": "x", "b": "2"},
    ]


@pytest.mark.parametrize("key", ["sep", "delimiter"])
def test_separator_quote_and_escape_can_be_chosen(tmp_path, key):
    given = {key: "|", "quote": "'", "escape": "\\", **HEADER}
    assert csv_rows(tmp_path, "a|b\n'x|y'|\\'z\n", **given) == [{"a": "x|y", "b": "'z"}]


@pytest.mark.parametrize("encoding", ["utf8", "iso-8859-1", "utf-16", "windows-1252"])
def test_the_encoding_can_be_chosen(tmp_path, encoding):
    assert csv_rows(tmp_path, "ä,b\né,ü\n".encode(encoding), encoding=encoding, **HEADER) == [{"ä": "é", "b": "ü"}]


@pytest.mark.parametrize("data", [b"a,b\n\xff,1\n", b"\xff,b\n1,1\n", b"a,b\n1\n", b"a,b\n1,2,3\n", b"\n\n"])
def test_a_file_that_is_no_csv_of_the_encoding_is_named(tmp_path, data):
    with pytest.raises(InvalidDataError, match=r"f\.csv cannot be read as CSV"):
        csv_rows(tmp_path, data, **HEADER)


@pytest.mark.parametrize("infers", ["true", "false"])
def test_a_header_alone_gives_columns_without_rows(tmp_path, infers):
    assert csv_rows(tmp_path, "a,b\n", inferSchema=infers, **HEADER) == []
    put(tmp_path / "g.csv", "a,b\n1,2\n", T0 + 1)
    assert len(rows_of(tmp_path, "csv", csv={"inferSchema": infers, **HEADER})) == 1


def test_columns_of_csv_files_are_matched_by_their_names(tmp_path):
    put(tmp_path / "1.csv", "a,b\n1,2\n", T0)
    put(tmp_path / "2.csv", "b,c\n3,4\n", T0 + 1)
    assert rows_of(tmp_path, "csv", csv=HEADER) == [{"a": "1", "b": "2", "c": None}, {"a": None, "b": "3", "c": "4"}]


def test_two_columns_of_one_name_are_refused_with_the_file(tmp_path):
    with pytest.raises(InvalidDataError, match=r"f\.csv.*duplicate field names"):
        csv_rows(tmp_path, "a,a\n1,2\n", **HEADER)


def test_an_unknown_option_is_refused_with_those_that_are_known():
    with pytest.raises(UnsupportedFeatureError, match=r"not supported: comment, mode\. Supported: sep, "):
        FolderSource(Storage("/nowhere"), "csv", csv={"mode": "DROPMALFORMED", "comment": "#", "sep": ";"})


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("sep", "||", "one character"),
        ("quote", "", "one character"),
        ("escape", "ab", "one character"),
        ("header", "yes", "true or false"),
        ("inferSchema", "1", "true or false"),
        ("encoding", "utf-99", "the name of an encoding"),
    ],
)
def test_a_wrong_value_of_an_option_is_refused_before_files_are_read(key, value, expected):
    with pytest.raises(
        ConfigError, match=rf"hoodie.streamer.csv.{key} is {expected}.*; got {value!r}".replace("|", r"\|")
    ):
        FolderSource(Storage("/nowhere"), "csv", csv={key: value})


# ---- Avro


AVRO: list[tuple[Any, Any, pa.DataType, Callable[[Any], Any]]] = [
    ("int", -5, pa.int32(), lambda value: value),
    ("float", 1.5, pa.float32(), lambda value: value),
    (["null", "string"], None, pa.string(), lambda value: value),
    ({"type": "string", "logicalType": "uuid"}, UUID(int=5), pa.string(), str),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", pa.string(), lambda value: value),
    ({"type": "fixed", "name": "f", "size": 2}, b"ab", pa.binary(2), lambda value: value),
    ({"type": "map", "values": "long"}, {"k": 1}, pa.map_(pa.string(), pa.int64()), lambda value: [*value.items()]),
    ({"type": "array", "items": ["null", "long"]}, [1, None], pa.list_(pa.int64()), lambda value: value),
    ({"type": "int", "logicalType": "date"}, date(2024, 1, 2), pa.date32(), lambda value: value),
    ({"type": "long", "logicalType": "timestamp-millis"}, datetime(2024, 1, 2, tzinfo=UTC), None, lambda value: value),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, datetime(2024, 1, 2), None, lambda value: value),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        Decimal("-1.25"),
        pa.decimal128(5, 2),
        lambda value: value,
    ),
]


@pytest.mark.parametrize(("kind", "value", "expected", "shown"), AVRO, ids=[str(one[0]) for one in AVRO])
def test_values_of_each_avro_type_are_read(tmp_path, kind, value, expected, shown):
    avro_file(tmp_path / "f.avro", [{"name": "a", "type": kind}], [{"a": value}], "deflate")
    made = source(tmp_path, "avro").fetch(None, None).rows.read_all()
    assert made["a"].to_pylist() == [None if value is None else shown(value)]
    assert expected is None or made["a"].type.id == expected.id


def test_dates_and_times_beyond_those_of_python_are_read(tmp_path):
    far = {"type": "long", "logicalType": "timestamp-micros"}, {"type": "int", "logicalType": "date"}
    fields = [{"name": name, "type": kind} for name, kind in zip("td", far, strict=True)]
    avro_file(tmp_path / "f.avro", fields, [{"t": 253_402_300_800_000_000, "d": -800_000}])
    made = source(tmp_path, "avro").fetch(None, None).rows.read_all()
    assert made["t"].cast(pa.int64()).to_pylist() == [253_402_300_800_000_000]
    assert made["d"].cast(pa.int32()).to_pylist() == [-800_000]


def test_records_in_records_and_in_arrays_are_read(tmp_path):
    point = {"type": "record", "name": "p", "fields": [{"name": "x", "type": ["null", "int"]}]}
    fields = [{"name": "a", "type": ["null", point]}, {"name": "l", "type": {"type": "array", "items": "p"}}]
    rows = [{"a": {"x": 1}, "l": [{"x": None}, {"x": 2}]}, {"a": None, "l": []}]
    avro_file(tmp_path / "f.avro", fields, rows)
    assert rows_of(tmp_path, "avro") == rows


def test_an_avro_file_of_many_blocks_is_read_whole(tmp_path):
    rows = [{"n": n, "s": "x" * 100} for n in range(2000)]
    write("avro", tmp_path / "f.avro", rows)
    assert rows_of(tmp_path, "avro") == rows


def test_an_avro_file_without_records_has_columns_and_no_rows(tmp_path):
    write("avro", tmp_path / "f.avro", [])
    assert source(tmp_path, "avro").fetch(None, None).rows.read_all().to_pydict() == {"n": [], "s": []}
