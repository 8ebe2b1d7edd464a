"""An accelerated session beside Apache Hudi: the same program on both, tables in turns, what is left to Apache Hudi."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from tests.spark.programs import run_program

ANSWERS = Path(__file__).parents[1] / "spark" / "quick_start_answers.txt"
NAME = {"hoodie.table.name": "t"}
PARTITIONED = {**NAME, "hoodie.datasource.write.partitionpath.field": "part"}
DELETE = {**NAME, "hoodie.datasource.write.operation": "delete"}


def with_values(rows, value):
    return rows.set_column(rows.column_names.index("v"), "v", pa.array([value] * rows.num_rows, pa.int64()))


def pick(rows, *ids):
    return rows.filter(pc.is_in(rows["id"], pa.array(ids)))


def values(rows):
    found = [(row["id"], row["v"], row["_hoodie_record_key"]) for row in rows.to_pylist()]
    return sorted(found)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", pytest.param("MERGE_ON_READ", marks=pytest.mark.long)])
def test_rows_of_a_table_that_makes_its_keys_are_written_back_in_turns(hudi_12, tmp_path, kind):
    path = tmp_path / "t"
    rows = pa.table({"id": list("abcdef"), "v": pa.array([1] * 6, pa.int64()), "part": list("xyxyxy")})
    hudi_12.write(rows, path, {**PARTITIONED, "hoodie.datasource.write.table.type": kind}, "overwrite")
    keys = {row["id"]: row["_hoodie_record_key"] for row in hudi_12.read(path).to_pylist()}
    done = hf.write(with_values(pick(hf.HudiTable.open(path).to_arrow(), "a", "b"), 2), path, NAME)
    assert (done.updates, done.inserts) == (2, 0)
    hudi_12.write(with_values(pick(hudi_12.read(path), "b", "c"), 3), path, NAME)
    assert hf.write(pick(hf.HudiTable.open(path).to_arrow(), "d"), path, DELETE).deletes == 1
    hudi_12.write(pick(hudi_12.read(path), "e"), path, DELETE)
    expected = sorted((name, value, keys[name]) for name, value in {"a": 2, "b": 3, "c": 3, "f": 1}.items())
    assert values(hudi_12.read(path)) == expected
    assert values(hf.HudiTable.open(path).to_arrow()) == expected


@pytest.mark.long
@pytest.mark.timeout(660)
def test_the_quick_start_on_apache_hudi(java, tmp_path, request):
    """The answers that hudi_fast is held to (tests/spark/test_spark_dropin_quick_start.py)."""
    python = request.config.rootpath / ".venv-hudi" / "bin" / "python"
    printed = run_program("quick_start", tmp_path, "1.2.0", python=python, seconds=600)
    answers = ANSWERS.read_text(encoding="utf-8").splitlines()
    said = [line for line in printed if not line.startswith("# ")]  # remarks of the JVM
    assert said[said.index(answers[0]) :] == answers


@pytest.mark.long
@pytest.mark.timeout(660)
def test_what_hudi_fast_refuses_goes_to_apache_hudi(java, tmp_path, request):
    python = request.config.rootpath / ".venv-spark35" / "bin" / "python"
    printed = run_program("falls_back", tmp_path, python=python, seconds=600)
    assert printed[-5:] == ["Row(part='x', v=1, id='a')", "1", "2 True", "True", "1"]
