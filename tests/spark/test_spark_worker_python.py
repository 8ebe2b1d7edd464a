"""The Python of local workers is asked for hudi_fast when a session first uses a table."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import hudi_fast as hf
from hudi_fast.spark import session as worker_python
from hudi_fast.spark.session import require_worker_python
from hudi_fast.spark.storage import storage_of


def session(python: str, master: str = "local[2]", name: str = "") -> SimpleNamespace:
    context = SimpleNamespace(applicationId=f"app-{python}-{master}-{name}", master=master, pythonExec=python)
    return SimpleNamespace(sparkContext=context, _jsparkSession=None)


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """A Python without packages."""
    file = tmp_path / "python-without-packages"
    file.write_text(f'#!/bin/sh\nexec env -u PYTHONPATH {sys.executable} -S -I "$@"\n')
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize("python", ["bare", "/no/such/python"])
def test_workers_without_hudi_fast_are_named_at_once(python: str, bare: str, tmp_path: Path) -> None:
    one = session(bare if python == "bare" else python)
    for call in (lambda: require_worker_python(one), lambda: storage_of(one, tmp_path)):
        with pytest.raises(hf.ConfigError, match=rf"which lacks hudi_fast.*set PYSPARK_PYTHON={sys.executable}"):
            call()


def test_workers_with_hudi_fast_are_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "another-name"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    one = session(str(other))
    require_worker_python(one)
    monkeypatch.setattr(worker_python.subprocess, "run", None)
    require_worker_python(one)
    require_worker_python(session(sys.executable))


def test_workers_of_clusters_and_of_connect_are_not_asked() -> None:
    require_worker_python(session("/no/such/python", "spark://host:7077"))
    require_worker_python(SimpleNamespace())
