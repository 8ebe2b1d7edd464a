"""A dbt project builds Hudi tables in a session of hudi_fast: views, tables, and incremental models of each strategy.

Module: hudi_fast.spark_api.sql.statements. dbt is in the environment of the oldest PySpark: it does not run on Spark 4.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(500)]

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def built(request: pytest.FixtureRequest, java: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The scratch folder, and what the program said of two builds."""
    python = request.config.rootpath / ".venv-spark35" / "bin" / "python"
    if not python.exists():
        pytest.skip("make setup makes an environment with dbt")
    folder = tmp_path_factory.mktemp("dbt")
    command = [str(python), str(HERE / "dbt_build.py"), str(folder), str(HERE / "dbt_project")]
    environment = {**os.environ, "PYSPARK_PYTHON": str(python), "PYTHONPATH": str(request.config.rootpath)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


def test_models_of_every_kind_follow_their_source(built: tuple[Path, Any]) -> None:
    first, second = built[1]["answers"]
    assert first == {
        "fares": [["a", 10.0, "Oslo"], ["b", 20.0, "Rome"]],
        "daily": [["Oslo", 1, 10.0], ["Rome", 1, 20.0]],
        "totals": [["Italy", 20.0], ["Norway", 10.0]],
        "log": [[2]],
        "columns": ["ride", "fare", "ts", "city"],
    }
    assert second == {
        "fares": [["a", 10.0, "Oslo"], ["b", 25.0, "Rome"], ["c", 5.0, "Oslo"]],
        "daily": [["Oslo", 2, 15.0], ["Rome", 1, 25.0]],
        "totals": [["Italy", 25.0], ["Norway", 15.0]],
        "log": [[2], [4]],
        "columns": ["ride", "fare", "ts", "country", "city"],
    }


def test_a_model_is_a_hudi_table_with_the_options_of_its_config(built: tuple[Path, Any]) -> None:
    folder, said = built
    table = hf.HudiTable.open(folder / "warehouse" / "rides.db" / "fares")
    assert (table.table_type, table.config.record_key_fields) == ("MERGE_ON_READ", ("ride",))
    assert {one["action"] for one in table.history().to_pylist()} == {"deltacommit"}
    described = {row[0]: row[2] for row in reversed(said["described"])}
    assert described["ride"] == 'the rider\'s "ticket"'
    assert ["Comment", "one row for each ride", ""] in said["described"]
