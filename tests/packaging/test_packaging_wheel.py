"""The wheel and the sdist: their contents, and hudi_fast from an installed wheel, outside the checkout."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from tests.packaging.builds import CHECKOUT, build_wheel, run

pytestmark = pytest.mark.slow

QUICK_START = """
import pyarrow as pa
import hudi_fast as hf

options = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
hf.write(pa.table({"id": ["a", "b"], "ts": [1, 1], "fare": [1.0, 2.0]}), "trips", options)
result = hf.HudiTable.open("trips").upsert(pa.table({"id": ["b", "c"], "ts": [2, 2], "fare": [20.0, 3.0]}))
print(result.updates, result.inserts)
print(hf.HudiTable.open("trips").to_arrow(columns=["id", "fare"]).sort_by("id").to_pylist())
"""
SPARK = """
from pyspark.sql import SparkSession
import hudi_fast as hf

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "1").getOrCreate()
options = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hudi_fast.plan": "broadcast",
}
hf.write(spark.createDataFrame([("a", 1, 1.0), ("b", 1, 2.0)], "id string, ts long, fare double"), "trips", options)
hf.write(spark.createDataFrame([("b", 2, 20.0)], "id string, ts long, fare double"), "trips", options)
print([tuple(row) for row in hf.read(spark, "trips").select("id", "fare").orderBy("id").collect()])


def sources(_):
    import sys
    import pyarrow as pa
    import hudi_fast.kernels

    yield pa.RecordBatch.from_pydict({"at": [sys.prefix, hudi_fast.kernels.__file__]})


print(*sorted({row["at"] for row in spark.range(1).mapInArrow(sources, "at string").collect()}), sep="\\n")
spark.stop()
"""
TYPED = """
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import hudi_fast as hf
from hudi_fast.streamer.sources.source import Fetched


def load(path: str, rows: pa.Table) -> hf.WriteResult:
    words = hf.write(rows, path, key="id", partition_by=["city"], order_by="ts", table_type="merge_on_read")
    result = hf.write(rows, path, {"hoodie.metadata.enable": True}, operation="insert", index="record")
    print(words.inserts + result.updates, result.instant.upper(), result.plan.upper())
    return result


def work(path: str, rows: pa.Table) -> None:
    table = hf.HudiTable(path)
    table.upsert(rows)
    table.insert([{"id": 1, "city": "Oslo"}])
    table.update(where="id = 1", set={"city": "upper(city)"})
    table.delete(where="id = 2")
    table.merge(rows).on("target.id = source.id").when_matched_update().when_not_matched_insert().execute()
    found, number = table.to_arrow(columns=["id"], filter="fare > 5", as_of="2024-01-01"), table.count() + 1
    for batch in table.to_batches():
        number += batch.num_rows
    print(found.num_rows, number, table.history().num_rows, table.explain("id = 1"))
    table.services.clean()
    table.services.compact()
    table.services.cluster({"hoodie.clustering.plan.strategy.sort.columns": "id"})
    table.services.index(kind="record_index")
    print(table.services.validate().ok, hf.is_table(path), hf.scan(path).head(3).num_rows)


class Own:
    def fetch(self, position: str | None, limit: int | None) -> Fetched:
        return Fetched(pa.table({"id": [1]}).to_reader(), "1", {})

    def committed(self, position: str | None) -> None: ...

    def close(self) -> None: ...


def feed(path: str, options: Mapping[str, Any]) -> None:
    for turn in hf.Streamer(options, source=Own(), target_base_path=path, target_table="t").run():
        print(turn.inserts + 1, turn.instant.upper())
    try:
        hf.read(path, filter="id = 1")
    except hf.TableNotFoundError as error:
        print(error)
"""
MISTYPED = """
import hudi_fast as hf

hf.write([], "t", key="id", operation="upsrt")
hf.write([], "t", key="id", table_type="mor")
hf.write([], "t", key="id", index="recrd")
hf.write([], "t", kye="id")
hf.HudiTable("t").upsrt([])
text: str = hf.HudiTable("t").count()
hf.write([], "t").insrts
"""


def modules_of_the_checkout() -> set[str]:
    """Names, in an installation, of all Python files that are shipped."""
    own = {path.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / "hudi_fast").rglob("*.py")}
    return own | {f"hudi_fast/kernels/{path.name}" for path in (CHECKOUT / "kernels").glob("*.py")}


def data_of_the_checkout() -> set[str]:
    found = (path for path in (CHECKOUT / "hudi_fast").rglob("*") if path.suffix in {".avsc", ".thrift", ".typed"})
    return {"hudi_fast/kernels/_runtime.c", *(path.relative_to(CHECKOUT).as_posix() for path in found)}


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    shipped = {name for name in names if ".dist-info/" not in name}
    assert shipped == modules_of_the_checkout() | data_of_the_checkout()
    assert {"hudi_fast/py.typed", "hudi_fast/kernels/bloom.py"} < shipped
    assert len(data_of_the_checkout()) >= 4
    assert [name for name in names if name.endswith("licenses/LICENSE")] != []


@pytest.mark.slow
def test_the_sdist_holds_the_sources_and_no_tests(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {str(PurePosixPath(*PurePosixPath(one.name).parts[1:])) for one in archive if one.isfile()}
    shipped = modules_of_the_checkout() | data_of_the_checkout()
    assert {name.replace("hudi_fast/kernels/", "kernels/") for name in shipped} <= names
    assert {"LICENSE", "README.md", "pyproject.toml", "setup.py"} <= names
    assert [name for name in names if name.startswith("tests/")] == []


@pytest.mark.slow
def test_a_wheel_from_the_sdist_is_the_same(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    again = build_wheel(unpacked, tmp_path / "again")
    with zipfile.ZipFile(again) as one, zipfile.ZipFile(wheel) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())


@pytest.mark.slow
def test_the_quick_start_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    updated, rows = run([installed / "python", "-c", QUICK_START], tmp_path).splitlines()
    assert updated == "1 1"
    assert rows == str([{"id": "a", "fare": 1.0}, {"id": "b", "fare": 20.0}, {"id": "c", "fare": 3.0}])
    told = run([installed / "hudi-fast", "info", "trips"], tmp_path)
    assert "trips" in told
    assert "COPY_ON_WRITE" in told


def test_the_package_and_its_kernels_come_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = "import hudi_fast, hudi_fast.kernels.bloom as bloom; print(hudi_fast.__file__, bloom.__file__, sep='\\n')"
    for line in run([installed / "python", "-c", code], tmp_path, PYTHONPATH="").splitlines():
        assert Path(line).is_relative_to(installed.parent)


def test_programs_of_a_user_are_checked_by_mypy(installed: Path, tmp_path: Path) -> None:
    """Calls as the pages show them have the right types; each misspelt word, value or name is an error."""
    for name, text in (("typed.py", TYPED), ("mistyped.py", MISTYPED)):
        (tmp_path / name).write_text(text)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--disable-error-code", "import-untyped"]
    command = [*mypy, "--python-executable", str(installed / "python")]
    run([*command, "typed.py"], tmp_path, PYTHONPATH="")
    done = subprocess.run([*command, "mistyped.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    wrong = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error: " in line}
    assert wrong == set(range(4, 11)), done.stdout


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_spark_workers_use_the_wheel(
    java: str, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(installed / "python"))
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    rows, *places = run([installed / "python", "-c", SPARK], tmp_path).splitlines()
    assert rows == str([("a", 1.0), ("b", 20.0)])
    assert len(places) == 2
    assert all(Path(place).is_relative_to(installed.parent) for place in places)
