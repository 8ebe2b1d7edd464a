"""The wheel and the sdist: their contents, and hudi_fast from an installed wheel, outside the checkout."""

from __future__ import annotations

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
