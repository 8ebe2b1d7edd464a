"""Names of columns in merges, updates and deletes: in upper or lower case, by every call of one process."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner

import hudi_fast as hf
from hudi_fast.cli.main import cli
from hudi_fast.dml.assignments import column_of, resolved_spec
from hudi_fast.dml.statement import MATCHED, Clause, MergeSpec
from tests.support.small_tables import listing

Spell = Callable[[str], str]

SPELLINGS: dict[str, Spell] = {
    "as they are": str,
    "lower": str.lower,
    "upper": str.upper,
    "swapped": str.swapcase,
}
INNER = pa.struct([("x", pa.int64()), ("Y", pa.string())])
SCHEMA = pa.schema(
    [("id", pa.int64()), ("Day", pa.string()), ("userName", pa.string()), ("ts", pa.int64()), ("info", INNER)]
)
STORED = [(1, "mon", "ann", 1, {"x": 1, "Y": "a"}), (2, "tue", "bob", 1, None)]
GIVEN = [(1, "mon", "new", 5, {"x": 7, "Y": "b"}), (3, "tue", "ins", 5, {"x": 8, "Y": "c"})]
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def rows_of(values: list[tuple[Any, ...]], schema: pa.Schema = SCHEMA) -> pa.Table:
    columns = [pa.array([row[at] for row in values], field.type) for at, field in enumerate(schema)]
    return pa.table(columns, schema=schema)


def spelt(kind: pa.DataType, spell: Spell) -> pa.DataType:
    if not pa.types.is_struct(kind):
        return kind
    return pa.struct([pa.field(spell(one.name), spelt(one.type, spell)) for one in kind])


def source(spell: Spell) -> pa.Table:
    """The given rows, with names spelt in another way at all levels."""
    schema = pa.schema([pa.field(spell(one.name), spelt(one.type, spell)) for one in SCHEMA])
    named = {"x": spell("x"), "Y": spell("Y")}
    values = [(*row[:4], {named[name]: value for name, value in row[4].items()}) for row in GIVEN]
    return rows_of(values, schema)


def new_table(path: Path, kind: str = "COPY_ON_WRITE", ordering: bool = True) -> hf.HudiTable:
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "Day",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.index.bloom.num_entries": "100",
        "hudi_fast.threads": "1",
    }
    if ordering:
        options["hoodie.datasource.write.precombine.field"] = "ts"
    hf.write(rows_of(STORED), path, options)
    return hf.HudiTable.open(path)


def stored(table: hf.HudiTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow(SCHEMA.names).to_pylist())


MERGED = [GIVEN[0], STORED[1], GIVEN[1]]
RENAMED = [(1, "mon", "NEW", 5, {"x": 7, "Y": "b"}), STORED[1], (3, "tue", "INS", 5, None)]
MOVED = [(1, "TUE", "ann", 1, {"x": 1, "Y": "a"}), STORED[1]]
SET_ONE = [(1, "mon", "ANN", 2, {"x": 1, "Y": "a"}), STORED[1]]


def merge_all(table: hf.HudiTable, n: Spell) -> None:
    table.merge(source(n)).on([n("id"), n("Day")]).when_matched_update("*").when_not_matched_insert("*").execute()


def merge_by_a_mapping(table: hf.HudiTable, n: Spell) -> None:
    merge = hf.merge(table.path, source(n)).on({n("ID"): "iD"})
    merge.when_matched_update().when_not_matched_insert().execute()


def merge_by_text(table: hf.HudiTable, n: Spell) -> None:
    values = {name: f"{n('s')}.{n(name)}" for name in ("id", "Day", "ts")}
    name = {n("userName"): f"upper({n('s')}.{n('username')})"}
    merge = table.merge(source(n), aliases=("t", "s")).on(f"{n('T')}.{n('id')} = {n('S')}.{n('id')}")
    merge = merge.when_matched_update(
        {n("TS"): n("s.ts"), n("info"): n("S.info"), **name}, f"{n('s.info')}.{n('x')} = 7"
    )
    merge.when_not_matched_insert({**values, **name}, f"{n('S.username')} <> 'nobody'").execute()


def merge_by_expressions(table: hf.HudiTable, n: Spell) -> None:
    merge = table.merge(source(n)).on(pc.field(f"target.{n('ID')}") == pc.field(f"source.{n('id')}"))
    merge.when_matched_update().when_not_matched_insert().execute()


def merge_of_sql(table: hf.HudiTable, n: Spell) -> None:
    hf.sql(
        f"MERGE INTO t USING s ON t.{n('id')} = S.{n('ID')} AND T.{n('day')} = s.{n('Day')} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        {"t": table, "s": source(n)},
    )


def merge_of_sql_by_columns(table: hf.HudiTable, n: Spell) -> None:
    hf.sql(
        f"MERGE INTO t USING s ON t.{n('id')} = s.{n('id')} "
        f"WHEN MATCHED AND s.{n('info')}.{n('y')} = 'b' THEN UPDATE SET t.{n('username')} = upper(s.{n('USERNAME')}), "
        f"{n('TS')} = s.{n('ts')}, `{n('INFO')}` = s.`{n('info')}` "
        f"WHEN NOT MATCHED THEN INSERT ({n('ID')}, {n('day')}, {n('USERNAME')}, {n('ts')}) "
        f"VALUES (s.{n('id')}, s.{n('day')}, upper(s.{n('username')}), s.{n('ts')})",
        {"t": table, "s": source(n)},
    )


def update(table: hf.HudiTable, n: Spell) -> None:
    values = {n("username"): f"upper({n('USERNAME')})", n("TS"): f"{n('ts')} + 1"}
    table.update(f"{n('Id')} = 1 and {n('info')}.{n('X')} = 1", values)


def update_of_sql(table: hf.HudiTable, n: Spell) -> None:
    hf.sql(
        f"UPDATE t AS a SET a.{n('USERNAME')} = upper({n('a.username')}), {n('ts')} = {n('TS')} + 1 "
        f"WHERE A.{n('id')} < 2 AND {n('Day')} = 'mon'",
        {"t": table},
    )


def update_of_cli(table: hf.HudiTable, n: Spell) -> None:
    pairs = ["--set", f"{n('USERNAME')}=upper({n('username')})", "--set", f"{n('ts')}={n('TS')} + 1"]
    answer = CliRunner().invoke(cli, ["update", table.path, *pairs, "--where", f"{n('ID')} = 1"])
    assert answer.exit_code == 0, answer.output


def move(table: hf.HudiTable, n: Spell) -> None:
    table.update(f"{n('DAY')} = 'mon'", {n("day"): "'TUE'"})


def delete(table: hf.HudiTable, n: Spell) -> None:
    table.delete(f"{n('ID')} = 2 and {n('username')} = 'bob'")


def delete_by_merge(table: hf.HudiTable, n: Spell) -> None:
    merge = table.merge(source(n)).on([n("ID")]).when_not_matched_by_source_delete(f"target.{n('day')} = 'tue'")
    merge.execute()


def insert_by_name(table: hf.HudiTable, n: Spell) -> None:
    names = ", ".join(f"{value} AS {n(name)}" for name, value in (("id", "3"), ("Day", "'tue'"), ("ts", "5")))
    hf.sql(f"INSERT INTO t BY NAME SELECT {names}", {"t": table})


DOORS = {
    merge_all: MERGED,
    merge_by_a_mapping: MERGED,
    merge_by_text: RENAMED,
    merge_by_expressions: MERGED,
    merge_of_sql: MERGED,
    merge_of_sql_by_columns: RENAMED,
    update: SET_ONE,
    update_of_sql: SET_ONE,
    update_of_cli: SET_ONE,
    move: MOVED,
    delete: STORED[:1],
    delete_by_merge: STORED[:1],
    insert_by_name: [*STORED, (3, "tue", None, 5, None)],
}


@pytest.mark.slow
@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize(("door", "expected"), DOORS.items(), ids=[door.__name__ for door in DOORS])
def test_names_in_any_case_mean_the_columns_of_the_table(door, expected, spell, tmp_path: Path) -> None:
    for kind in KINDS:
        table = new_table(tmp_path / kind, kind)
        door(table, spell)
        assert stored(table) == expected


def with_twin(column: str, twin: str) -> pa.Table:
    given = source(str)
    return given.append_column(twin, given.column(column))


AMBIGUOUS = {
    "all columns": lambda table: table.merge(with_twin("userName", "USERNAME")).on("id").when_matched_update(),
    "inserts": lambda table: table.merge(with_twin("ts", "TS")).on("id").when_not_matched_insert(),
    "match": lambda table: table.merge(with_twin("id", "ID")).on("id").when_matched_update({"ts": "7"}),
    "text of the match": lambda table: (
        table.merge(with_twin("id", "ID")).on("target.id = source.id").when_matched_update({"ts": "7"})
    ),
    "copied": lambda table: (
        table.merge(with_twin("userName", "USERNAME")).on("id").when_matched_update({"userName": "source.userName"})
    ),
    "computed": lambda table: (
        table.merge(with_twin("userName", "username"))
        .on("id")
        .when_matched_update({"userName": "upper(source.userName)"})
    ),
    "condition": lambda table: (
        table.merge(with_twin("ts", "Ts")).on("id").when_matched_update({"userName": "'x'"}, "source.TS > 1")
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("merge", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_names_that_differ_only_in_case_are_refused_before_anything_is_written(merge, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    before = listing(tmp_path)
    with pytest.raises(hf.ConfigError, match=r"ambiguous, because .* differ only in case"):
        merge(table).execute()
    assert listing(tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.update(None, {"ts": "1", "TS": "2"}), "the column 'ts' is set twice"),
        (lambda table: table.update(None, {"ID": "1"}), r"key columns \['id'\] .* cannot be set"),
        (lambda table: table.update(None, {"nope": "1"}), r"there are no columns \['nope'\]"),
        (lambda table: hf.sql("UPDATE t SET ts = 1, Ts = 2", {"t": table}), "the column 'ts' is set twice"),
        (lambda table: table.merge(source(str), aliases=("t", "T")), "two different names"),
    ],
)
def test_names_in_two_cases_are_one_column(change, message, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    with pytest.raises(hf.ConfigError, match=message):
        change(table)
    assert stored(table) == STORED


def test_rows_of_writes_are_refused_by_name(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    for write in (table.upsert, table.insert, table.bulk_insert):
        with pytest.raises(
            hf.SchemaMismatchError, match=r"'username' differs from the table's column 'userName' only in"
        ):
            write(source(str.lower))
    with pytest.raises(hf.InvalidDataError, match=r"\['id'\] .* are not among the incoming columns \['ID', 'Day'\]"):
        table.delete(pa.table({"ID": [1], "Day": ["mon"]}))
    assert stored(table) == STORED


def test_a_key_that_equals_two_columns_of_the_source_is_a_condition(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    given = pa.table({"a": [1, 2], "b": [1, 9]})
    hf.sql("MERGE INTO t USING s ON t.id = s.a AND t.ID = s.b WHEN MATCHED THEN DELETE", {"t": table, "s": given})
    assert stored(table) == STORED[1:]


# ---- the resolution itself


def test_exact_names_are_those_that_are_spelt_alike() -> None:
    spec = MergeSpec(
        condition="T.id = S.id", clauses=(Clause(MATCHED, "update", None, {"v": "S.v"}),), aliases=("T", "S")
    )
    assert resolved_spec(spec, ["ID", "V"], ["Id", "v"]) == MergeSpec(
        pairs=(("ID", "Id"),), clauses=(Clause(MATCHED, "update", None, {"V": "S.v"}),), aliases=("T", "S")
    )
    exact = MergeSpec(condition="T.id = S.id", aliases=("T", "S"), exact_names=True)
    assert resolved_spec(exact, ["ID"], ["id"]) == exact
    assert resolved_spec(exact, ["id", "ID"], ["id", "Id"]).pairs == (("id", "id"),)
    with pytest.raises(hf.ConfigError, match=r"there are no columns \['id'\]"):
        resolved_spec(MergeSpec(pairs=(("id", "id"),), exact_names=True), ["ID"], ["id"])


def test_text_that_is_no_name_stays_as_it_is() -> None:
    assert column_of(" `S`.v ", ["s.V", "t.v"], "x") == "s.V"
    assert column_of("s.v + 1", ["s.v"], "x") is None
    assert column_of("'s.v'", ["s.v"], "x") is None


@pytest.mark.slow
@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_fields_of_inserted_structs_are_found_in_any_case_and_their_types_are_checked(spell, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t")
    given = source(spell)
    given = given.slice(1).select([spell(name) for name in ("id", "userName", "ts", "info", "Day")])
    hf.sql("INSERT INTO t SELECT * FROM s", {"t": table, "s": given})
    assert stored(table) == [*STORED, GIVEN[1]]
    times = pa.array([{spell("x"): datetime.date(2024, 1, 1), spell("Y"): "c"}])
    wrong = given.set_column(3, spell("info"), times)
    for change in (
        lambda: hf.sql("INSERT INTO t SELECT * FROM s", {"t": table, "s": wrong}),
        lambda: table.merge(wrong).on("id").when_matched_update({"info": "source.info"}).execute(),
    ):
        with pytest.raises(
            hf.SchemaMismatchError, match=r"column 'info.x' is int64 in the table and the value is date32"
        ):
            change()
    assert stored(table) == [*STORED, GIVEN[1]]
