"""Columns that the clauses of a merge set."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.compute import field

import hudi_fast as hf
from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.dml.assignments import assigned, partial_columns_of, values_of
from hudi_fast.dml.statement import MATCHED, NOT_MATCHED, Clause, MergeSpec
from hudi_fast.errors import ConfigError, SchemaMismatchError
from hudi_fast.schema.assignment import Outcome, outcome_of
from tests.support.small_tables import listing

NAMES = ["id", "part", "ts", "fare"]
ON_ID = MergeSpec(pairs=(("id", "key"),))


def config(kind: str = "MERGE_ON_READ", version: int = 9) -> TableConfig:
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.type": kind,
        "hoodie.table.version": str(version),
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": "part",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.table.precombine.field": "ts",
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.timeline.layout.version": "2" if version > 6 else "1",
    }
    return TableConfig.from_properties(properties, "/t")


def update(**values: Any) -> Clause:
    return Clause(MATCHED, "update", values=values or None)


def test_a_star_sets_the_columns_that_the_source_has() -> None:
    insert = Clause(NOT_MATCHED, "insert")
    found = assigned(insert, config(), NAMES, ["fare", "ts", "other"], ON_ID)
    assert found == {"ts": "source.ts", "fare": "source.fare"}


def test_a_key_column_cannot_be_set_but_to_the_value_that_it_is_matched_on() -> None:
    assert assigned(update(id="source.key", fare=1), config(), NAMES, ["key"], ON_ID) == {"fare": 1}
    with pytest.raises(ConfigError, match=r"\['id'\]"):
        assigned(update(id=7), config(), NAMES, ["key"], ON_ID)
    with pytest.raises(ConfigError, match=r"`\*`.*\['id'\]"):
        assigned(update(), config(), NAMES, ["id", "fare"], MergeSpec(pairs=(("fare", "fare"),)))
    assert assigned(Clause(NOT_MATCHED, "insert", values={"id": 7}), config(), NAMES, [], ON_ID) == {"id": 7}


def test_unknown_columns_and_no_columns_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"\['nope'\]"):
        assigned(update(nope=1), config(), NAMES, [], ON_ID)
    with pytest.raises(ConfigError, match="no columns to set"):
        assigned(update(id="source.key"), config(), NAMES, ["key"], ON_ID)


@pytest.mark.parametrize(
    ("table", "clauses", "options", "expected"),
    [
        (config(), (update(fare=1, ts=2),), {}, ["ts", "fare"]),
        (config(), (update(fare=1), update(fare=2)), {}, ["fare"]),
        (config(), (update(fare=1), update(ts=2)), {}, None),
        (config(), (update(part="'p'"),), {}, None),
        (config(), (update(fare=1), Clause(NOT_MATCHED, "insert", values={"id": 1})), {}, None),
        (config(), (Clause(MATCHED, "delete"),), {}, None),
        (config("COPY_ON_WRITE"), (update(fare=1),), {}, None),
        (config(version=6), (update(fare=1),), {}, None),
        (config(), (update(fare=1),), {"hoodie.spark.sql.merge.into.partial.updates": "false"}, None),
    ],
)
def test_updates_that_set_the_same_columns_are_partial(
    table: TableConfig, clauses: tuple[Clause, ...], options: dict[str, str], expected: list[str] | None
) -> None:
    spec = MergeSpec(pairs=ON_ID.pairs, clauses=clauses)
    assert partial_columns_of(table, WriteOptions.from_options(options), spec, ["key"], NAMES) == expected


def test_values_have_the_types_of_the_table() -> None:
    rows = pa.table({"source.fare": ["1.5", None], "target.ts": [1, 2]})
    schema = pa.schema({"fare": pa.float64(), "ts": pa.int32()})
    made = values_of({"fare": "source.fare", "ts": field("target.ts") + 1}, rows, schema, update())
    assert made.schema == pa.schema({"fare": pa.float64(), "ts": pa.int32()})
    assert made.to_pydict() == {"fare": [1.5, None], "ts": [2, 3]}


SAMPLES: dict[pa.DataType, Any] = {
    pa.bool_(): True,
    pa.int32(): 1,
    pa.int64(): 1,
    pa.float64(): 1.0,
    pa.string(): "1",
    pa.date32(): dt.date(2024, 1, 1),
    pa.time64("us"): dt.time(1),
    pa.timestamp("us", "UTC"): dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    pa.timestamp("us"): dt.datetime(2024, 1, 1),
    pa.decimal128(5, 2): Decimal("1.00"),
}
OTHER_MEANING = [
    pair for pair in product(SAMPLES, SAMPLES) if outcome_of(*pair) in (Outcome.NEVER, Outcome.ZONED)
]  # fmt: skip


@pytest.mark.slow
def test_updates_and_merges_refuse_values_that_columns_would_give_another_meaning(tmp_path: Path) -> None:
    columns = {f"c{number}": pa.array([value], kind) for number, (kind, value) in enumerate(SAMPLES.items())}
    names = dict(zip(SAMPLES, columns, strict=True))
    rows = pa.table({"id": ["a"], "ts": [1], **columns})
    keyed = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts"}
    hf.write(rows, tmp_path / "t", {"hoodie.table.name": "t", **keyed})
    table = hf.HudiTable.open(tmp_path / "t")
    held = listing(tmp_path / "t")
    for kind, value in OTHER_MEANING:
        said = (
            rf"column '{names[kind]}' is {re.escape(str(kind))} in the table and the value is {re.escape(str(value))}"
        )
        with pytest.raises(SchemaMismatchError, match=f"when matched update.*{said}"):
            table.merge(rows).on("id").when_matched_update({names[kind]: f"source.{names[value]}"}).execute()
        with pytest.raises(SchemaMismatchError, match=said):
            table.update(None, {names[kind]: names[value]})
        with pytest.raises(SchemaMismatchError, match=said):
            hf.sql(f"UPDATE t SET {names[kind]} = {names[value]}", {"t": table})
    moments = names[pa.timestamp("us", "UTC")], names[pa.timestamp("us")]
    for literal in (5, SAMPLES[pa.timestamp("us")]):
        with pytest.raises(SchemaMismatchError, match=f"column '{moments[0]}' is timestamp"):
            table.update(None, {moments[0]: literal})
    with pytest.raises(SchemaMismatchError, match=f"INSERT INTO t: column '{moments[0]}'.*assume_timezone"):
        hf.sql(f"INSERT INTO t (id, ts, {moments[0]}) SELECT 'b', 1, {moments[1]} FROM t", {"t": table})
    source = pa.table({moments[0]: columns[moments[1]]})
    with pytest.raises(SchemaMismatchError, match=f"on, compared with '{moments[0]}' of the source: column"):
        table.merge(source).on(moments[0]).when_matched_delete().execute()
    assert listing(tmp_path / "t") == held
