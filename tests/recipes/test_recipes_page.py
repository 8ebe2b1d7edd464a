"""``docs/recipes.md``: its files compile, and what needs no other tool runs as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hudi_fast as hf
from tests.docs.test_docs import PAGES, blocks, run
from tests.recipes.page import files_of_the_page, put_file
from tests.servers.s3 import ACCESS_KEY, REGION, SECRET_KEY, S3Server

WITH_OTHER_TOOLS = {"airflow", "boto3", "dagster", "fastapi", "pandera", "pendulum", "prefect"}
EVENT_OF_LAMBDA = """
import json, sys
from handler import handler

records = [{"s3": {"bucket": {"name": sys.argv[1]}, "object": {"key": key}}} for key in sys.argv[2:]]
print(json.dumps(handler({"Records": records}, None)))
"""


def test_every_file_and_block_of_python_compiles() -> None:
    files = files_of_the_page()
    programs = {name: text for name, text in files.items() if name.endswith(".py")}
    programs |= {f"block {number}": code for number, code in enumerate(blocks("recipes", spark=False))}
    for name, text in programs.items():
        compile(text, name, "exec")
    assert len(programs) >= 10
    assert sum(name.endswith(".py") for name in programs) == len(programs) - len(blocks("recipes", spark=False))


def test_a_file_needs_the_tool_of_its_recipe_and_hudi_fast() -> None:
    for name, text in files_of_the_page().items():
        if name.endswith(".py"):
            imported = set(re.findall(r"^\s*(?:import|from) (\w+)", text, re.MULTILINE))
            assert "hudi_fast" in imported, name
            assert imported & WITH_OTHER_TOOLS, f"{name} needs no other tool: print it as a block that the tests run"


def test_every_fence_is_a_block_that_runs_or_a_file() -> None:
    fences = re.findall(r"^```(\S.*)$", PAGES["recipes"], re.MULTILINE)
    assert [one for one in fences if one not in ("python", "sh") and " title=" not in one] == []


def test_blocks_that_need_hudi_fast_alone_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run("recipes", blocks("recipes", spark=False), {"__name__": "page"}, capsys)


@pytest.mark.slow
def test_the_script_for_cron_loads_a_folder_and_ends_at_a_bad_file(tmp_path: Path) -> None:
    script, incoming = put_file("load_fares.sh", tmp_path), tmp_path / "incoming"
    incoming.mkdir()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def night() -> int:
        variables = {**os.environ, "LAKE": str(tmp_path), "PATH": path}
        return subprocess.run(["sh", str(script)], env=variables, capture_output=True, check=False).returncode

    assert night() == 0
    (incoming / "1.csv").write_text("id,city,fare,ts\n1,Oslo,9.5,1\n2,Rome,3.0,1\n")
    (incoming / "2.csv").write_text("id,city,fare,ts\n2,Rome,4.0,2\n")
    (incoming / "3.csv").write_text("id,city,fare\n3,Rome,1.0\n")
    assert night() == 1
    assert sorted(one.name for one in incoming.iterdir()) == ["3.csv"]
    assert sorted(one.name for one in (tmp_path / "done").iterdir()) == ["1.csv", "2.csv"]
    rows = hf.read(tmp_path / "fares", columns=["id", "fare"]).sort_by("id").to_pylist()
    assert rows == [{"id": 1, "fare": 9.5}, {"id": 2, "fare": 4.0}]


def test_the_handler_for_lambda_upserts_the_files_of_an_event(s3_server: S3Server, tmp_path: Path) -> None:
    import boto3

    put_file("handler.py", tmp_path)
    keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_REGION": REGION}
    client = boto3.client(
        "s3",
        endpoint_url=s3_server.url,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )
    client.put_object(
        Bucket=s3_server.bucket, Key="in coming/1.csv", Body=b"id,city,fare,ts\n1,Oslo,9.5,1\n2,Rome,3.0,1\n"
    )
    client.put_object(Bucket=s3_server.bucket, Key="in coming/2.csv", Body=b"id,city,fare,ts\n2,Rome,4.0,2\n")
    table = s3_server.path("lambda_fares")
    variables = {**os.environ, **keys, "AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL": s3_server.url, "TABLE": table}
    command = [sys.executable, "-c", EVENT_OF_LAMBDA, s3_server.bucket, "in+coming/1.csv", "in+coming/2.csv"]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = hf.read(table, columns=["id", "fare"], storage_options=s3_server.options).sort_by("id").to_pylist()
    assert rows == [{"id": 1, "fare": 9.5}, {"id": 2, "fare": 4.0}]
