"""docs/streamer.md: its first commands run as printed, and the keys and arguments that it names are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_fast.config.options import find_option
from hudi_fast.streamer.arguments import ARGUMENTS, REFUSED, WITHOUT_EFFECT
from hudi_fast.streamer.settings import STREAM_KEYS

TEXT = (Path(__file__).parents[2] / "docs" / "streamer.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^```sh\n(?!pip install)(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
OF_THE_COMMAND = {"base-path-prefix", "config-folder", "check", "health-port", "help", "hoodie-conf", "json", "props"}
OF_THE_COMMAND |= {"conf"}
OF_OTHERS = {"class", "executor-memory", "master", "no-cache-dir", "now", "options", "packages"}
OF_OTHERS |= {"descriptor_set_out", "include_imports"}
"""Arguments of spark-submit, pip, systemctl, protoc and other commands of hudi-fast."""


@pytest.mark.slow
def test_the_first_commands_run(tmp_path: Path) -> None:
    assert len(COMMANDS) == 4
    settings = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-e", "-c", "".join(COMMANDS)], cwd=tmp_path, env=settings, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = re.findall(r"^ (\w+) +(\S.*?) *$", done.stdout, re.MULTILINE)
    assert [value for name, value in found if name in ("inserts", "updates")] == ["2", "0", "0", "1"]
    shown = re.findall(r"^ (\w+)  ", TEXT, re.MULTILINE)
    assert [name for name, _ in found][: len(shown)] == shown


def test_the_arguments_that_the_page_names_are_there() -> None:
    known = {name for one in ARGUMENTS for name in (one.name, *one.others)} | {*REFUSED} | WITHOUT_EFFECT
    named = set(re.findall(r"--([a-z][a-z_-]+)", TEXT))
    assert len(named) > 15
    assert named - known - OF_THE_COMMAND - OF_OTHERS == set()


def test_the_keys_of_its_property_files_and_programs_are_there() -> None:
    keys = set(re.findall(r"^(hoodie\.[\w.]+)=", TEXT, re.MULTILINE)) | set(re.findall(r"\"(hoodie\.[\w.]+)\":", TEXT))
    keys = {key for key in keys if not key.startswith("hoodie.streamer.ingestion.")}  # of several tables
    own = {key for key in keys if key.startswith("hoodie.streamer.")}
    assert {key.removeprefix("hoodie.streamer.") for key in own} <= STREAM_KEYS
    assert [key for key in sorted(keys - own) if find_option(key) is None] == []
