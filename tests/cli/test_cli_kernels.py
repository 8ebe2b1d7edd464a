"""The command that fills the kernel cache."""

import os
import subprocess
import sys


def warm_up(folder, **environment):
    program = [sys.executable, "-c", "from hudi_fast.cli.main import main; main()", "warm-up"]
    given = {**os.environ, "NUMBA_CACHE_DIR": str(folder), **environment}
    return subprocess.run(program, env=given, capture_output=True, text=True, timeout=120)


def test_all_kernels_are_compiled_into_the_named_folder(tmp_path):
    done = warm_up(tmp_path)
    assert done.returncode == 0, done.stderr
    count, _, folder = done.stdout.strip().partition(" kernels in ")
    assert folder.startswith(str(tmp_path / "hudi_fast-kernels"))
    assert len(list(tmp_path.rglob("*.nbi"))) == int(count) >= 15
    assert warm_up(tmp_path).stdout == done.stdout
