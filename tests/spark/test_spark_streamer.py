"""The streamer with Spark as its engine, without the packages of a source.

Tests of sessions (``test_spark_sessions.py``) run it on the oldest PySpark, and on Spark Connect.
"""

from __future__ import annotations

import subprocess

import pytest


@pytest.mark.slow
def test_workers_without_the_client_of_kafka_are_told_apart(request):
    python = request.config.rootpath / ".venv-spark35" / "bin" / "python"
    program = "from hudi_fast.streamer.on_spark.sources import require_client; require_client()"
    done = subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=False)
    expected = f"ConfigError: Spark's Python workers run {python}, which has no module 'confluent_kafka'. Install 'hudi"
    assert expected in done.stderr.splitlines()[-1]
