"""Change queries: the answers of real Hudi, and a model's over tables that are written here.

Modules: hudi_fast.reading.incremental.cdc.
"""

from __future__ import annotations

import json
import pickle
import re
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.reading.incremental import cdc, cdc_units
from hudi_fast.reading.incremental.cdc import change_options, changes_batches, changes_table, plan_query
from hudi_fast.reading.incremental.cdc_units import CdcCase
from hudi_fast.storage.base import Storage
from tests.reading.cdc_models import Model, changes_of
from tests.support.small_tables import options, plain_rows

TABLES = Path(__file__).with_name("cdc_tables")
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
MODES = ("DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY")
DECIMAL = re.compile(r'("dec\d+":|"when":-?\d+,"d":)(?:-?[\d.]+|\{"zero":(?:false|true)\})')


def unzipped(name: str, folder: Path) -> Path:
    with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
        archive.extractall(folder)
    return folder


def texts(rows: list[list[str | None]]) -> Counter[tuple[str | None, ...]]:
    """Changes byte for byte, but for decimals of rows: real Hudi writes ``{"zero":false}`` in their place."""
    return Counter(tuple(one and DECIMAL.sub(r"\1#", one) for one in row) for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in TABLES.glob("*.zip")))
def test_every_answer_of_real_hudi_is_given_byte_for_byte(name: str, tmp_path: Path) -> None:
    folder = unzipped(name, tmp_path)
    table = hf.HudiTable.open(folder / "table")
    for answer in json.loads((folder / "answers.json").read_text()):
        if "error" in answer:
            with pytest.raises(hf.CorruptTableError, match=re.escape(answer["error"].split(": ")[-1].rstrip("."))):
                table.cdc(answer["begin"], answer["end"])
            continue
        found = table.cdc(answer["begin"], answer["end"])
        assert texts([list(row.values()) for row in found.to_pylist()]) == texts(answer["rows"]), answer["begin"]


@pytest.mark.parametrize("name", ["cow_v9_cdc", "mor_v9_cdc"])
def test_the_golden_answers_are_given_byte_for_byte(name: str, golden: Any) -> None:
    stored = golden(name)
    found = hf.HudiTable.open(stored.table).cdc("earliest")
    assert found.schema.names == ["op", "ts_ms", "before", "after"]
    assert Counter(map(repr, found.to_pylist())) == Counter(map(repr, stored.cdc()))


def test_a_plan_is_a_value_that_another_process_reads_alike(golden: Any) -> None:
    plan = plan_query(Storage(golden("mor_v9_cdc").table), change_options("earliest", None))
    assert {unit.case for unit in plan.units} == {CdcCase.AS_IS, CdcCase.BASE_FILE_INSERT, CdcCase.LOG_FILE}
    assert all(unit.weight > 0 for unit in plan.units)
    copy = pickle.loads(pickle.dumps(plan))
    assert changes_table(copy) == changes_table(plan)
    assert changes_of(changes_batches(plan).read_all()) == changes_of(changes_table(plan))


# ---- tables that are written here


def cdc_options(kind: str, mode: str, **changes: Any) -> dict[str, Any]:
    return {
        **options(**changes),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
        "hoodie.metadata.enable": "false",
        "hoodie.clean.automatic": "false",
    }


def rows_of(rows: pa.Table) -> list[dict[str, Any]]:
    return json.loads(json.dumps(rows.to_pylist(), default=str))


def life(path: Path, given: dict[str, Any]) -> Model:
    """Inserts, updates, late rows, deletes, compaction, an overwritten and a deleted partition."""
    model = Model()

    def write(rows: pa.Table, operation: str) -> str:
        return hf.write(rows, path, {**given, "hoodie.datasource.write.operation": operation}).instant

    for numbers, ts in ((range(12), 1), (range(8, 16), 3), (range(10, 14), 2)):
        rows = plain_rows(list(numbers), ts)
        model.upsert(write(rows, "upsert"), rows_of(rows))
    gone = plain_rows([3, 4, 99], 5)
    model.delete(write(gone, "delete"), gone["id"].to_pylist())
    if given["hoodie.datasource.write.table.type"] == MOR:
        hf.HudiTable.open(path).services.compact()
    rows = plain_rows(list(range(14, 20)), 6)
    model.upsert(write(rows, "upsert"), rows_of(rows))
    rows = plain_rows([0, 40], 7)
    instant = write(rows, "insert_overwrite")
    parts = set(rows["part"].to_pylist())
    model.delete(instant, [key for key, row in model.rows.items() if row["part"] in parts])
    model.upsert(instant, rows_of(rows))
    return model


@pytest.mark.slow(but="MERGE_ON_READ-OP_KEY_ONLY-9")
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize(("kind", "mode"), [(COW, mode) for mode in MODES] + [(MOR, MODES[0]), (MOR, MODES[2])])
def test_changes_are_those_that_were_made(kind: str, mode: str, version: str, tmp_path: Path) -> None:
    model = life(tmp_path / "t", cdc_options(kind, mode, table_version=version))
    table = hf.HudiTable.open(tmp_path / "t")
    instants = sorted({one[1] for one in model.changes})
    assert len(instants) == 5  # late rows changed nothing
    for begin in ("000", *instants):
        assert changes_of(table.cdc(begin)) == model.since(begin)
    assert changes_of(table.cdc(instants[0], instants[1])) == [one for one in model.since("") if one[1] == instants[1]]
    assert_parts_are_those_of_the_whole(table)


def assert_parts_are_those_of_the_whole(table: hf.HudiTable) -> None:
    """Some columns of some changes, whichever images they need, are those of all columns."""
    whole = table.cdc("earliest")
    for columns in (["op"], ["ts_ms", "before"], ["after", "op"], ["before", "after"]):
        for condition in (None, pa.compute.field("op") == "u", pa.compute.field("after").is_null()):
            found = table.cdc("earliest", columns=columns, filter=condition)
            expected = (whole if condition is None else whole.filter(condition)).select(columns)
            assert found.schema == expected.schema
            assert Counter(map(repr, found.to_pylist())) == Counter(map(repr, expected.to_pylist())), (
                columns,
                condition,
            )


@pytest.mark.slow(but="MERGE_ON_READ-DATA_BEFORE_AFTER")
@pytest.mark.parametrize(("kind", "mode"), [*((COW, mode) for mode in MODES), (MOR, MODES[0])])
def test_images_that_nobody_asks_for_are_not_made(
    kind: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life(tmp_path / "t", cdc_options(kind, mode))
    table = hf.HudiTable.open(tmp_path / "t")
    whole = table.cdc("earliest")
    for module in (cdc_units, cdc):
        monkeypatch.setattr(module, "json_rows", None)
    found = table.cdc("earliest", columns=["op", "ts_ms"])
    assert Counter(map(repr, found.to_pylist())) == Counter(map(repr, whole.select(["op", "ts_ms"]).to_pylist()))


@pytest.mark.slow("DATA_BEFORE")
@pytest.mark.parametrize("mode", MODES)
def test_a_column_that_came_later_is_null_in_older_changes(mode: str, tmp_path: Path) -> None:
    given = cdc_options(COW, mode)
    for ts in (1, 2):
        hf.write(plain_rows([1, 2], ts), tmp_path / "t", given)
    rows = plain_rows([1], 3).append_column("more", pa.array([1.5]))
    last = hf.write(rows, tmp_path / "t", given).instant
    table = hf.HudiTable.open(tmp_path / "t")
    old, new = table.cdc("earliest", str(int(last) - 1)), table.cdc(str(int(last) - 1))
    updates = old.filter(pa.compute.equal(old["op"], "u"))
    assert updates.num_rows == 2
    assert all(json.loads(text).get("more") is None for text in updates["after"].to_pylist())
    assert [json.loads(text)["more"] for text in new["after"].to_pylist()] == [1.5]
    if mode == MODES[0]:
        assert '"more": null' in updates["after"][0].as_py()


@pytest.mark.slow(but="DATA_BEFORE_AFTER")
@pytest.mark.parametrize("mode", MODES)
def test_older_changes_are_told_in_the_names_of_today(mode: str, tmp_path: Path) -> None:
    given = cdc_options(COW, mode)
    for ts in (1, 2):
        hf.write(plain_rows([1, 2], ts), tmp_path / "t", given)
    table = hf.HudiTable.open(tmp_path / "t")
    table.alter(hf.RenameColumn("text", "words"))
    changes = table.cdc("earliest").to_pylist()
    images = [
        json.loads(one[image]) for one in changes for image in ("before", "after") if one[image] not in (None, "null")
    ]
    assert len(images) == 6
    assert {row["words"] for row in images} == {"a1", "a2"}
    assert not any("text" in row for row in images)


def test_log_files_are_replayed_on_a_slice_whose_compaction_is_pending(tmp_path: Path) -> None:
    given, model = cdc_options(MOR, MODES[0]), Model()
    for ts, numbers in ((1, range(8)), (2, range(4)), (3, range(2, 6)), (4, [0, 3, 9])):
        rows = plain_rows(list(numbers), ts)
        model.upsert(hf.write(rows, tmp_path / "t", given).instant, rows_of(rows))
        if ts == 2:
            assert hf.HudiTable.open(tmp_path / "t").services.schedule_compact() is not None
    table = hf.HudiTable.open(tmp_path / "t")
    plan = plan_query(Storage(tmp_path / "t"), change_options("earliest", None))
    waiting = [unit for unit in plan.units if unit.case is CdcCase.LOG_FILE and unit.before and unit.before.log_files]
    assert waiting
    assert changes_of(table.cdc("earliest")) == model.since("")
    table.services.compact(pending_only=True)
    assert changes_of(table.cdc("earliest")) == model.since("")


@pytest.mark.parametrize("mode", MODES[1:])
def test_images_are_looked_up_for_some_records_at_a_time(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cdc, "_LOOKED_UP_ROWS", 1)
    given, model = cdc_options(COW, mode), Model()
    for ts in (1, 2):
        rows = plain_rows(list(range(8)), ts, partitions=1)
        model.upsert(hf.write(rows, tmp_path / "t", given).instant, rows_of(rows))
    assert changes_of(hf.HudiTable.open(tmp_path / "t").cdc("earliest")) == model.since("")


# ---- what has no answer


def test_a_range_ends_where_it_is_told_to_and_may_be_empty(tmp_path: Path) -> None:
    given = cdc_options(COW, MODES[0])
    first, second = (hf.write(plain_rows([ts]), tmp_path / "t", given).instant for ts in (1, 2))
    table = hf.HudiTable.open(tmp_path / "t")
    assert table.cdc("earliest", first)["ts_ms"].to_pylist() == [first]
    assert table.cdc(first, second)["ts_ms"].to_pylist() == [second]
    empty = table.cdc(second)
    assert (empty.num_rows, empty.schema) == (0, table.cdc("earliest").schema)
    with pytest.raises(hf.ConfigError, match="ends before it begins"):
        table.cdc(second, first)


def test_the_range_has_to_begin_in_the_active_timeline(tmp_path: Path) -> None:
    archiving = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    given = {**cdc_options(COW, MODES[0]), **archiving, "hoodie.clean.automatic": "true"}
    instants = [hf.write(plain_rows([1], ts), tmp_path / "t", given).instant for ts in range(6)]
    table = hf.HudiTable.open(tmp_path / "t")
    for begin in ("earliest", instants[0]):
        with pytest.raises(
            hf.ConfigError, match=r"Start instant time \d+ for CDC query has to be in the active timeline"
        ):
            table.cdc(begin)
    assert table.cdc(instants[-2])["ts_ms"].to_pylist() == [instants[-1]]


@pytest.mark.parametrize(("mode", "match"), [(MODES[0], "has been cleaned"), (MODES[2], "Can not get the previous")])
def test_changes_that_were_cleaned_are_told_with_what_to_do(mode: str, match: str, tmp_path: Path) -> None:
    given = cdc_options(COW, mode)
    instants = [hf.write(plain_rows([1], ts), tmp_path / "t", given).instant for ts in range(4)]
    table = hf.HudiTable.open(tmp_path / "t")
    table.services.clean({"hoodie.clean.commits.retained": "1"})
    with pytest.raises(hf.ConfigError, match=f"{match}.*Begin after"):
        table.cdc("earliest")
    assert table.cdc(instants[-2])["op"].to_pylist() == ["u"]


def test_a_replaced_file_group_that_was_cleaned_is_warned_of(tmp_path: Path) -> None:
    given = {**cdc_options(COW, MODES[0]), "hoodie.datasource.write.operation": "insert_overwrite"}
    instants = [hf.write(plain_rows([2 * ts], ts), tmp_path / "t", given).instant for ts in range(3)]
    table = hf.HudiTable.open(tmp_path / "t")
    assert table.cdc(instants[0])["op"].to_pylist() == ["i", "d", "i", "d"]
    table.services.clean({"hoodie.clean.commits.retained": "1"})
    with pytest.warns(hf.HudiWarning, match="have been cleaned since"):
        assert table.cdc(instants[0], instants[1])["op"].to_pylist() in (["i"], [])
