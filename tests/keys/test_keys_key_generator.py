"""Record keys and partition paths of batches, against tables of real Hudi and a twin that goes row by row."""

from __future__ import annotations

import pickle
import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import ConfigError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.keys.key_generator import (
    KeyConfig,
    infer_kind,
    parse_partition_spec,
    partition_paths,
    record_keys,
    refuse_stand_ins,
)
from tests.naive import key_text as naive
from tests.support.golden import Golden, golden_names

CLASSES = {"Simple": "SIMPLE", "Complex": "COMPLEX", "TimestampBased": "TIMESTAMP", "Nonpartitioned": "NON_PARTITION"}


def simple(**options) -> KeyConfig:
    return KeyConfig("SIMPLE", ("id",), ("part",), **options)


def complex_keys(*fields, **options) -> KeyConfig:
    return KeyConfig("COMPLEX", fields, ("part",), **options)


# ---- tables of real Hudi


def config_of(table: Path) -> KeyConfig:
    lines = (table / ".hoodie" / "hoodie.properties").read_text("latin-1").splitlines()
    pairs = (re.sub(r"\\(.)", r"\1", line).split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    props = dict(pairs)
    kind = props.get("hoodie.table.keygenerator.type")
    if kind is None:
        kind = CLASSES[re.search(r"(\w+)KeyGenerator", props["hoodie.table.keygenerator.class"])[1]]
    fields, types = parse_partition_spec(props.get("hoodie.table.partition.fields", ""))
    timebased = {key: value for key, value in props.items() if key.startswith("hoodie.keygen.timebased.")}
    if "hoodie.keygen.timebased.input.dateformat" in timebased:
        # Tables of version 6 do not store the type.
        timebased.setdefault("hoodie.keygen.timebased.timestamp.type", "DATE_STRING")
    return KeyConfig(
        kind,
        tuple(props["hoodie.table.recordkey.fields"].split(",")),
        fields,
        types,
        hive_style=props["hoodie.datasource.write.hive_style_partitioning"] == "true",
        url_encode=props["hoodie.datasource.write.partitionpath.urlencode"] == "true",
        timebased=timebased,
        default_zone="UTC",
    )


def rows_of(golden: Golden) -> list[pa.Table]:
    """The expected snapshot and every base file, with keys and paths as Hudi wrote them."""
    files = [path for path in golden.table.rglob("*.parquet") if ".hoodie" not in path.relative_to(golden.table).parts]
    tables = [pq.ParquetFile(path).read() for path in files]
    if golden.has("snapshot"):
        tables.append(golden.snapshot())
    return [table for table in tables if "_hoodie_record_key" in table.column_names and table["_hoodie_record_key"][:1]]


@pytest.mark.parametrize("name", golden_names())
def test_keys_and_paths_are_those_of_real_hudi(golden: Callable[[str], Golden], name: str):
    table = golden(name)
    config = config_of(table.table)
    for rows in rows_of(table):
        expected = rows.select(["_hoodie_record_key", "_hoodie_partition_path"])
        if not expected.column(0)[0].as_py():
            continue  # no meta fields in this table
        if config.kind == "TIMESTAMP" and "DATE_STRING" not in config.timebased.values():
            # Spark gives the source column of such a table back as a string.
            field = config.partition_fields[0]
            rows = rows.set_column(rows.schema.get_field_index(field), field, rows[field].cast(pa.int64()))
        if any(rows[field].null_count for field in config.record_key_fields):
            # MERGE INTO without the key column among its assignments leaves it null below a key taken from the join.
            continue
        assert record_keys(config, rows).to_pylist() == expected.column(0).to_pylist()
        assert partition_paths(config, rows).to_pylist() == expected.column(1).to_pylist()


# ---- record keys


def test_a_string_key_is_the_column_itself():
    table = pa.table({"id": ["a", "b"], "part": ["x", "x"]})
    keys = record_keys(simple(), table)
    assert keys.buffers()[2].address == table["id"].chunk(0).buffers()[2].address
    assert record_keys(simple(), table.to_batches()[0]).equals(keys)


def test_chunks_are_joined():
    table = pa.table({"id": pa.chunked_array([["a"], ["b", "c"], []], pa.string())})
    keys = record_keys(simple(), table)
    assert isinstance(keys, pa.Array)
    assert keys.to_pylist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (simple(), "7"),
        (KeyConfig("TIMESTAMP", ("id",), ("part",)), "7"),
        (KeyConfig("NON_PARTITION", ("id",), ()), "7"),
        (KeyConfig("NON_PARTITION", ("id", "name"), ()), "id:7,name:é"),
        (complex_keys("id"), "id:7"),
        (complex_keys("id", single_key_prefixed=False), "7"),
        (complex_keys("name", "id", single_key_prefixed=False), "name:é,id:7"),
        (KeyConfig("GLOBAL_DELETE", ("id",), ()), "id:7"),
        (KeyConfig("CUSTOM", ("id",), ("part",), ("SIMPLE",)), "7"),
        (KeyConfig("CUSTOM", ("id", "name"), ("part",), ("SIMPLE",)), "id:7,name:é"),
        (complex_keys("st.a.b", "id"), "st.a.b:x,id:7"),
    ],
)
def test_each_generator_has_its_form(config, expected):
    table = pa.table({"id": [7], "name": ["é"], "part": ["p"], "st": [{"a": {"b": "x"}}]})
    keys = record_keys(config, table)
    assert keys.type == pa.string()
    assert keys.to_pylist() == [expected]


def test_null_and_empty_have_a_form_beside_other_fields():
    table = pa.table({"a": ["x", None, ""], "b": [None, 2, 3]})
    keys = record_keys(KeyConfig("COMPLEX", ("a", "b"), ()), table)
    assert keys.to_pylist() == ["a:x,b:__null__", "a:__null__,b:2", "a:__empty__,b:3"]


def test_rows_without_a_key_are_refused_with_count_and_first_row():
    table = pa.table({"id": ["a", None, "", "b"], "b": [None, None, 1, 2]})
    with pytest.raises(InvalidDataError, match=r"'id' cannot be null or empty: 2 of 4 rows, the first of them row 11"):
        record_keys(simple(), table, first_row=10)
    with pytest.raises(InvalidDataError, match=r"'id', 'b' cannot be null or empty all at once: 1 of 4 rows.* row 1"):
        record_keys(complex_keys("id", "b"), table)
    with pytest.raises(InvalidDataError, match=r"'b' cannot be null or empty: 2 of 4"):
        record_keys(complex_keys("b"), table)


def test_a_null_struct_has_a_null_field():
    table = pa.table({"st": [{"a": "x"}, None]})
    with pytest.raises(
        InvalidDataError, match=r"'st\.a' cannot be null or empty: 1 of 2 rows, the first of them row 1"
    ):
        record_keys(KeyConfig("SIMPLE", ("st.a",), ("st.a",)), table)


@pytest.mark.parametrize("name", ["nope", "st.nope", "id.a", "st.a.b", ""])
def test_fields_that_are_not_there_are_refused_by_name(name):
    table = pa.table({"id": ["a"], "st": [{"a": "x"}]})
    with pytest.raises(InvalidDataError, match=re.escape(f"Record key field {name!r} must exist exactly once")):
        record_keys(KeyConfig("NON_PARTITION", (name,), ()), table)
    with pytest.raises(InvalidDataError, match=re.escape(f"Partition field {name!r} must exist exactly once")):
        partition_paths(KeyConfig("SIMPLE", ("id",), (name,)), table)


@pytest.mark.parametrize("kind", ["AUTO_RECORD", "SIMPLE", "TIMESTAMP", "COMPLEX"])
def test_generated_keys_count_the_rows(kind):
    config = KeyConfig(kind, (), ("part",))
    table = pa.table({"part": ["a", "b", "c"]})
    keys = record_keys(config, table, auto_prefix="20240101000000000_3", first_row=9)
    assert keys.to_pylist() == [f"20240101000000000_3_{row}" for row in (9, 10, 11)]
    with pytest.raises(ConfigError, match=r"recordkey\.field"):
        record_keys(config, table)


VALUE = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=4))


@given(st.lists(st.tuples(VALUE, VALUE, VALUE), max_size=6), st.integers(1, 3), st.booleans(), st.integers(0, 3))
def test_keys_are_those_of_the_slow_twin(rows, count, prefixed, cut):
    names = ["a", "b", "c"][:count]
    columns = {name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(names)}
    table = pa.table(columns)
    if cut < len(rows):
        table = pa.concat_tables([table[:cut], table[cut:]])
    config = KeyConfig("COMPLEX", tuple(names), (), single_key_prefixed=prefixed)
    expected = [naive.record_key(names, list(row[:count]), prefixed) for row in rows]
    if None in expected:
        with pytest.raises(
            InvalidDataError, match=f"{expected.count(None)} of {len(rows)} rows.* row {expected.index(None)}"
        ):
            record_keys(config, table)
    else:
        assert record_keys(config, table).to_pylist() == expected


# ---- partition paths


@given(st.lists(st.tuples(VALUE, VALUE), max_size=8), st.integers(1, 2), st.booleans(), st.booleans(), st.booleans())
def test_paths_are_those_of_the_slow_twin(rows, count, hive_style, url_encode, dictionaries):
    names = ["a", "b"][:count]
    columns = [pa.array([row[at] for row in rows], pa.string()) for at in range(count)]
    table = pa.table([column.dictionary_encode() if dictionaries else column for column in columns], names)
    config = KeyConfig("COMPLEX", ("a",), tuple(names), hive_style=hive_style, url_encode=url_encode)
    expected = [naive.partition_path(names, list(row[:count]), hive_style, url_encode) for row in rows]
    bad = [path for path in expected if set(path.split("/")) & {"", ".", ".."} or "\0" in path or path == ".hoodie"]
    if bad:
        with pytest.raises(InvalidDataError, match="'a'"):
            partition_paths(config, table)
        return
    paths = partition_paths(config, table)
    assert paths.to_pylist() == expected
    assert paths.type == pa.dictionary(pa.int32(), pa.string())
    assert sorted(paths.dictionary.to_pylist()) == sorted(set(expected))


@pytest.mark.parametrize("kind", ["NON_PARTITION", "GLOBAL_DELETE", "COMPLEX"])
def test_without_partition_fields_the_path_is_empty(kind):
    assert partition_paths(KeyConfig(kind, ("id",), ()), pa.table({"id": [1, 2]})).to_pylist() == ["", ""]


def test_null_and_empty_share_the_default_partition():
    table = pa.table({"part": [None, "", "x"]})
    paths = partition_paths(simple(hive_style=True), table)
    assert paths.to_pylist() == ["part=__HIVE_DEFAULT_PARTITION__"] * 2 + ["part=x"]
    assert len(paths.dictionary) == 2
    assert partition_paths(simple(null_partition="default"), table).to_pylist() == ["default", "default", "x"]


def test_a_path_of_different_values_is_one_dictionary_entry():
    table = pa.table({"a": ["x/y", "x"], "b": ["z", "y/z"]})
    paths = partition_paths(KeyConfig("COMPLEX", ("a",), ("a", "b")), table)
    assert paths.to_pylist() == ["x/y/z", "x/y/z"]
    assert paths.dictionary.to_pylist() == ["x/y/z"]


def test_dates_may_be_separated_by_slashes():
    table = pa.table({"part": ["2024-01-02", "-5", None]})
    paths = partition_paths(simple(slash_separated_dates=True), table)
    assert paths.to_pylist() == ["2024/01/02", "-5", "__HIVE_DEFAULT_PARTITION__"]
    hive = partition_paths(simple(slash_separated_dates=True, hive_style=True), table.slice(0, 1))
    assert hive.to_pylist() == ["part=2024/01/02"]
    several = KeyConfig("COMPLEX", ("part",), ("part", "part"), slash_separated_dates=True)
    assert partition_paths(several, table.slice(0, 1)).to_pylist() == ["2024-01-02/2024-01-02"]


def test_custom_partitions_mix_values_and_times():
    fields, types = parse_partition_spec("part:simple, ts:TIMESTAMP")
    options = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyyMMdd", "timezone": "GMT"}
    config = KeyConfig("CUSTOM", ("id",), fields, types, hive_style=True, timebased=options)
    table = pa.table({"part": ["p0", "p1", None], "ts": [1704153600000, 1704240000000, None]})
    assert partition_paths(config, table).to_pylist() == [
        "part=p0/ts=20240102",
        "part=p1/ts=20240103",
        "part=__HIVE_DEFAULT_PARTITION__/ts=19700101",
    ]


def test_slashes_of_a_time_are_escaped_like_others():
    options = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy/MM", "timezone": "GMT"}
    config = KeyConfig("TIMESTAMP", ("id",), ("ts",), timebased=options, url_encode=True)
    assert partition_paths(config, pa.table({"ts": [1704153600000]})).to_pylist() == ["2024%2F01"]


@pytest.mark.parametrize("value", ["..", "a/../../b", "/etc", ".", "a//b", "a/", ".hoodie/x", "a\0"])
def test_values_that_leave_the_table_are_refused_with_their_rows(value):
    table = pa.table({"part": ["x", value, "x", value]})
    with pytest.raises(InvalidDataError, match=r"'part' result in the path .*: 2 rows, the first of them row 1"):
        partition_paths(simple(), table)


def test_the_type_of_a_partition_field_is_named_when_it_has_no_text():
    with pytest.raises(UnsupportedFeatureError, match="'part' is of type list"):
        partition_paths(simple(), pa.table({"part": [[1]]}))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.5, -0.0, 0.0, None, 1e7]),
        pa.array([True, None, False]),
        pa.array([1, 2, 1], pa.int8()),
        pa.array([0, 19000], pa.date32()),
        pa.array([b"\x00", b"\xff", None]),
        pa.array(["x", "y"], pa.large_string()),
        pa.array([None, None], pa.null()),
    ],
)
def test_paths_of_any_type_are_made_of_its_text(values):
    table = pa.table({"part": pa.chunked_array([values, values])})
    keyed = record_keys(KeyConfig("COMPLEX", ("n", "part"), ()), table.append_column("n", pa.array(range(len(table)))))
    texts = [key.partition(",part:")[2].replace("__null__", "__HIVE_DEFAULT_PARTITION__") for key in keyed.to_pylist()]
    assert partition_paths(simple(), table).to_pylist() == texts


def test_no_rows_give_no_keys_and_no_paths():
    table = pa.table({"id": pa.array([], pa.int64()), "part": pa.array([], pa.string())})
    for config in (simple(), complex_keys("id", "part"), KeyConfig("COMPLEX", ("id",), ("id", "part"))):
        assert record_keys(config, table).type == pa.string()
        assert len(record_keys(config, table)) == len(partition_paths(config, table)) == 0


def test_two_million_rows_in_ten_partitions_take_a_moment():
    part = pa.array([f"p{row}" for row in range(10)]).take(pa.array(np.arange(2_000_000) % 10))
    table = pa.table({"id": part, "part": part})
    began = time.perf_counter()
    paths = partition_paths(simple(hive_style=True), table)
    assert record_keys(simple(), table).equals(part)
    # It takes a fiftieth of that; text made row by row takes longer.
    assert time.perf_counter() - began < 1.0
    assert len(paths.dictionary) == 10


# ---- configs


@pytest.mark.parametrize(
    ("keys", "spec", "kind"),
    [
        (["id"], "", "NON_PARTITION"),
        (["a", "b"], "", "NON_PARTITION"),
        (["id"], "part", "SIMPLE"),
        ([], "part", "SIMPLE"),
        (["a", "b"], "part", "COMPLEX"),
        (["id"], "a,b", "COMPLEX"),
        ([], "a,b", "COMPLEX"),
        (["a", "b"], "part:SIMPLE", "CUSTOM"),
        (["id"], "a:TIMESTAMP,b:SIMPLE", "CUSTOM"),
    ],
)
def test_the_kind_follows_from_the_fields(keys, spec, kind):
    assert infer_kind(keys, spec) == kind


def test_partition_specs_split_into_fields_and_types():
    assert parse_partition_spec("a:SIMPLE,b:timestamp") == (("a", "b"), ("SIMPLE", "TIMESTAMP"))
    assert parse_partition_spec(" a , b.c ") == (("a", "b.c"), ())
    assert parse_partition_spec("") == ((), ())
    for spec in ("a:SIMPLE,b", "a:HOURLY", ":SIMPLE"):
        with pytest.raises(ConfigError, match=spec):
            parse_partition_spec(spec)


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (KeyConfig("USER_PROVIDED", ("id",), ("part",)), UnsupportedFeatureError),
        (KeyConfig("SIMPLE", ("id", "b"), ("part",)), ConfigError),
        (KeyConfig("SIMPLE", ("id",), ("part", "b")), ConfigError),
        (KeyConfig("TIMESTAMP", ("id",), ()), ConfigError),
        (KeyConfig("CUSTOM", ("id",), ("part",)), ConfigError),
        (KeyConfig("SIMPLE", ("id",), ("part",), ("SIMPLE",)), ConfigError),
        (KeyConfig("CUSTOM", ("id",), ("part",), ("SIMPLE",), slash_separated_dates=True), UnsupportedFeatureError),
    ],
)
def test_configs_that_contradict_themselves_are_refused(config, error):
    table = pa.table({"id": ["a"], "part": ["b"]})
    for make in (record_keys, partition_paths):
        with pytest.raises(error, match=config.kind):
            make(config, table)


def test_a_config_survives_pickling_and_can_be_a_dictionary_key():
    config = KeyConfig("TIMESTAMP", ("id",), ("ts",), timebased={"timestamp.type": "SCALAR"})
    assert pickle.loads(pickle.dumps(config)) == config
    assert {config: 1}[pickle.loads(pickle.dumps(config))] == 1


# ---- texts that stand for other values

FIELDS = ("a", "b", "n")


@given(st.lists(st.tuples(*[st.sampled_from([None, "", "x", "__null__", "__empty__", "__NULL__"])] * 2), min_size=1))
def test_rows_that_are_not_refused_have_keys_of_their_own(pairs) -> None:
    rows = pa.table(
        {"a": pa.array([a for a, _ in pairs], pa.string()), "b": pa.array([b for _, b in pairs], pa.string())}
    )
    config = KeyConfig("COMPLEX", ("a", "b"), ("p",))
    odd = [number for number, pair in enumerate(pairs) if {"__null__", "__empty__"} & set(pair)]
    if odd:
        with pytest.raises(InvalidDataError, match=r"Record key field '[ab]' is '__(null|empty)__' in \d+ of"):
            refuse_stand_ins(config, rows)
        return
    refuse_stand_ins(config, rows)
    kept = [pair for pair in pairs if any(pair)]
    keys = record_keys(config, rows.filter(pa.array([any(pair) for pair in pairs]))) if kept else []
    assert len(set(keys.to_pylist() if kept else [])) == len(set(kept))


def test_the_field_the_text_and_the_row_are_named() -> None:
    rows = pa.table({"a": ["x", "y", "__empty__"], "n": [1, 2, 3], "b": ["x"] * 3})
    config = KeyConfig("COMPLEX", FIELDS, ())
    message = r"'a' is '__empty__' in 1 of 3 rows, the first of them row 12\. .* stands for the empty text"
    with pytest.raises(InvalidDataError, match=message):
        refuse_stand_ins(config, rows, first_row=10)


@pytest.mark.parametrize(
    ("kind", "fields", "values"),
    [
        ("SIMPLE", ("a",), ["__null__", "__empty__"]),
        ("COMPLEX", ("a",), ["__null__"]),
        ("GLOBAL_DELETE", ("a",), ["__null__"]),
        ("COMPLEX", ("a", "b"), ["__null", "_null___", "null", "__null__ "]),
        ("COMPLEX", ("a", "b"), []),
        ("AUTO_RECORD", (), ["__null__"]),
    ],
)
def test_texts_that_share_no_key_are_taken(kind, fields, values) -> None:
    rows = pa.table({"a": pa.array(values, pa.string()), "b": pa.array(values, pa.string())})
    refuse_stand_ins(KeyConfig(kind, fields, ()), rows)
