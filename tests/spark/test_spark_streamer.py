"""The streamer with Spark as its engine on the oldest PySpark, and on Spark Connect."""

from __future__ import annotations

import subprocess

import pytest

from tests.spark.programs import run_program


@pytest.mark.slow
def test_a_streamer_runs_on_spark_35(java, tmp_path, request):
    python = request.config.rootpath / ".venv-spark35" / "bin" / "python"
    (line,) = run_program("stream_engine", tmp_path, python=python)
    assert line.startswith("pyspark.sql.session 3.5.")
    assert line.endswith(" 5 5 4")


@pytest.mark.slow
def test_a_streamer_runs_on_spark_connect(java, tmp_path):
    (line,) = run_program("stream_engine", tmp_path, "connect")
    assert line.startswith("pyspark.sql.connect.session 4.")
    assert line.endswith(" 5 5 4")


@pytest.mark.slow
def test_workers_without_the_client_of_kafka_are_told_apart(request):
    python = request.config.rootpath / ".venv-spark35" / "bin" / "python"
    program = "from hudi_fast.streamer.on_spark.kafka import require_client; require_client()"
    done = subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=False)
    expected = f"ConfigError: Spark's Python workers run {python}, which has no module 'confluent_kafka'. Install 'hudi"
    assert expected in done.stderr.splitlines()[-1]
