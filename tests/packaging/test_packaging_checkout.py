"""An uninstalled checkout on the import path is enough to use hudi_fast."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]


def run_uninstalled(code: str, folder: Path) -> list[str]:
    """The lines printed by code that sees the checkout and the dependencies, but no installed hudi_fast.

    ``-S`` leaves out ``.pth`` files, and with them the import finder of an editable installation.
    """
    path = os.pathsep.join([str(CHECKOUT), sysconfig.get_path("purelib")])
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_kernels_of_an_uninstalled_checkout_are_imported(tmp_path: Path) -> None:
    code = (
        "import hudi_fast, hudi_fast.kernels, hudi_fast.kernels.bloom as bloom\n"
        "print(hudi_fast.__file__, bloom.__file__, sep='\\n')"
    )
    assert run_uninstalled(code, tmp_path) == [
        str(CHECKOUT / "hudi_fast" / "__init__.py"),
        str(CHECKOUT / "kernels" / "bloom.py"),
    ]


@pytest.mark.slow
def test_an_uninstalled_checkout_writes_and_reads(tmp_path: Path) -> None:
    code = (
        "import pyarrow as pa, hudi_fast as hf\n"
        "options = {'hoodie.table.name': 't', 'hoodie.datasource.write.recordkey.field': 'id'}\n"
        "hf.write(pa.table({'id': ['a', 'b']}), 't', options)\n"
        "print(hf.HudiTable.open('t').to_arrow().num_rows)"
    )
    assert run_uninstalled(code, tmp_path) == ["2"]
