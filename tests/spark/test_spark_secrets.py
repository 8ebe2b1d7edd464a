"""Credentials appear in no commit, plan, event log, page of Spark's UI, log line or message.

Modules: hudi_fast.spark.storage, hudi_fast.storage.option_names.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.s3 import ACCESS_KEY, SECRET_KEY, S3Server
from tests.spark.programs import environment_of


@pytest.mark.timeout(900)
def test_a_session_with_event_log_and_ui_tells_no_credentials(java: str, s3_server: S3Server, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.spark.tells_no_secrets", str(tmp_path / "scratch"), s3_server.url]
    command += [s3_server.path("secrets"), ACCESS_KEY, SECRET_KEY]
    done = subprocess.run(command, env=environment_of(), capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
    found, searched = done.stdout.splitlines()[:-1], done.stdout.splitlines()[-1]
    assert found == []
    assert int(searched.removeprefix("searched ")) > 100_000
    assert SECRET_KEY not in done.stderr
