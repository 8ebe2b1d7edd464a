"""The recipes of ``docs/recipes.md`` run with Airflow, Dagster, Prefect, FastAPI and pandera, as the page prints them.

Each tool is in an environment of its own, which the first test with it makes (:mod:`tests.recipes.environments`).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from tests.recipes.environments import make_environment
from tests.recipes.page import put_file

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

PROGRAMS = Path(__file__).with_name("programs")
FARES = [{"id": 1, "fare": 9.5}, {"id": 2, "fare": 4.0}, {"id": 3, "fare": 7.0}]


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    """A folder with the CSV files of two days; the second has one row that is newer and one that is new."""
    folder = tmp_path / "incoming"
    folder.mkdir()
    (folder / "2024-01-01.csv").write_text("id,city,fare,ts\n1,Oslo,9.5,1\n2,Rome,3.0,1\n")
    (folder / "2024-01-02.csv").write_text("id,city,fare,ts\n2,Rome,4.0,2\n3,Oslo,7.0,2\n")
    return folder


def run(command: list[object], folder: Path, **variables: object) -> str:
    """The standard output of a command that runs in a folder."""
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def answer(program: str, python: Path, folder: Path, *more: object, **variables: object) -> Any:
    """The last line that a program prints, which is JSON."""
    return json.loads(run([python, PROGRAMS / program, folder, *more], folder, **variables).splitlines()[-1])


def rows(path: Path, *columns: str) -> list[dict[str, Any]]:
    return hf.read(path, columns=list(columns)).sort_by(columns[0]).to_pylist()


def test_the_dag_of_airflow_upserts_the_file_of_its_day(tmp_path: Path, incoming: Path) -> None:
    python = make_environment("airflow", ["apache-airflow>=3"])
    put_file("daily_fares.py", tmp_path)
    table = tmp_path / "lake" / "fares"
    home = {
        "AIRFLOW_HOME": tmp_path / "airflow",
        "AIRFLOW__CORE__DAGS_FOLDER": tmp_path,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    run([python.with_name("airflow"), "db", "migrate"], tmp_path, **home)
    said = answer("airflow_run.py", python, tmp_path, INCOMING=incoming, TABLE=table, **home)
    assert said == [["success", {"inserts": 2, "updates": 0}], ["success", {"inserts": 1, "updates": 1}]]
    assert rows(table, "id", "fare") == FARES
    assert hf.HudiTable(table).config.partition_fields == ("city",)


def test_assets_of_dagster_are_tables(tmp_path: Path) -> None:
    python = make_environment("dagster", ["dagster>=1.10"])
    put_file("hudi_io.py", tmp_path)
    assert answer("dagster_run.py", python, tmp_path, LAKE=tmp_path / "lake") == [[True, 3, 0], [True, 0, 3]]
    totals = rows(tmp_path / "lake" / "fares_by_city", "city", "fare_sum")
    assert totals == [{"city": "Oslo", "fare_sum": 16.5}, {"city": "Rome", "fare_sum": 3.0}]
    assert hf.HudiTable(tmp_path / "lake" / "fares").count() == 3


def test_the_flow_of_prefect_writes_its_files_in_one_commit(tmp_path: Path, incoming: Path) -> None:
    python = make_environment("prefect", ["prefect>=3"])
    put_file("load_fares.py", tmp_path)
    files = sorted(incoming.iterdir())
    home = {"PREFECT_HOME": tmp_path / "prefect", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    assert answer("prefect_run.py", python, tmp_path, *files, **home) == [True, True]
    assert rows(tmp_path / "fares", "id", "fare") == FARES
    assert len(hf.HudiTable(tmp_path / "fares").history()) == 2  # the flow ran twice


def test_the_endpoints_of_fastapi_answer_from_the_table(tmp_path: Path) -> None:
    python = make_environment("web", ["fastapi", "httpx", "pandera[pandas]"])
    put_file("api.py", tmp_path)
    fares = [{"id": 1, "city": "Oslo", "fare": 9.5}, {"id": 2, "city": "Rome", "fare": 3.0}]
    hf.write([{**one, "ts": 1} for one in [*fares, {"id": 3, "city": "Oslo", "fare": 7.0}]], tmp_path / "t", key="id")
    found = answer("fastapi_run.py", python, tmp_path, TABLE=tmp_path / "t")
    assert found[0][0] == 200
    assert sorted(one["id"] for one in found[0][1]) == [1, 3]
    assert found[1] == [200, [fares[0]]]
    assert found[2] == [200, []]  # the text of a request is a value, and never a part of the condition
    assert found[3] == [200, fares[1]]
    assert found[4] == [404, {"detail": "There is no fare 9."}]
    assert found[5][0] == 422


def test_rows_that_pandera_refuses_are_not_written(tmp_path: Path) -> None:
    python = make_environment("web", ["fastapi", "httpx", "pandera[pandas]"])
    put_file("checked_fares.py", tmp_path)
    assert answer("pandera_run.py", python, tmp_path) == [2, ["city", "fare"]]
    assert rows(tmp_path / "fares", "id", "fare") == [{"id": 1, "fare": 9.5}, {"id": 2, "fare": 3.0}]
    assert len(hf.HudiTable(tmp_path / "fares").history()) == 1
