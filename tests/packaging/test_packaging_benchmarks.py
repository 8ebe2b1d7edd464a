"""asv finds the benchmarks with the dependencies of the core alone, and runs them.

asv's own environments have the package without extras. It imports each module of ``benchmarks`` and of its packages;
``scale`` and ``against_hudi`` are programs, no packages.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = r"kernels_order\.Texts\.time_"

DISCOVERY = """
import importlib, importlib.abc, pkgutil, re, sys

EXTRAS = {"pyspark", "hdfs_native", "boto3", "botocore", "google", "azure", "fsspec", "duckdb", "polars", "pandas",
          "kazoo", "thriftpy2", "matplotlib", "cryptography", "lance", "pytest", "hypothesis", "moto", "deltalake",
          "confluent_kafka", "adbc_driver_postgresql", "adbc_driver_sqlite", "prometheus_client", "tqdm"}

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())

def modules(name):
    module = importlib.import_module(name)
    yield module
    for one in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
        yield from modules(one.name)

found = 0
for module in modules("benchmarks"):
    for name, value in vars(module).items():
        if re.match(r"(time|timeraw|track|mem|peakmem)_.+$", name) and callable(value):
            wrong = value.__code__.co_argcount and not hasattr(value, "params")
            assert not wrong, f"asv takes {module.__name__}.{name} for a benchmark"
        found += isinstance(value, type) and any(re.match(r"(time|peakmem|track)_", one) for one in vars(value))
print(found)
"""


def test_benchmarks_are_found_without_extras() -> None:
    done = subprocess.run([sys.executable, "-c", DISCOVERY], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


@pytest.mark.slow
def test_asv_runs_them_on_a_machine_that_it_does_not_know(tmp_path: Path) -> None:
    pytest.importorskip("asv")
    asv, own = str(Path(sys.executable).parent / "asv"), {**os.environ, "HOME": str(tmp_path)}
    run = [asv, "run", "--python=same", "--quick", "--dry-run", "--show-stderr", "--bench", TINY]
    for command in ([asv, "machine", "--yes"], run):
        done = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in done.stdout, done.stdout
    assert "time_common_prefix" in done.stdout, done.stdout
