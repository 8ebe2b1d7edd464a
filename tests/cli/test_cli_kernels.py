"""The command that fills the kernel cache."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hudi_fast.kernels import _ahead

from tests.packaging.builds import copy_package, leave_few_kernels
from tests.packaging.test_packaging_compiled import HASH

COMMAND = [sys.executable, "-c", "from hudi_fast.cli.main import main; main()", "warm-up"]


def package_of_few_kernels(folder):
    """The package without compiled kernels, as if it had few of them."""
    copy_package(folder)
    leave_few_kernels(folder / "hudi_fast" / "kernels")


def run(command, cache, package=package_of_few_kernels, **environment):
    """The output of a command with an empty cache, and a package without compiled kernels."""
    packages = cache / "packages"
    if not packages.exists():
        package(packages)
    folders = {"NUMBA_CACHE_DIR": str(cache), "XDG_CACHE_HOME": str(cache / "home"), "PYTHONPATH": str(packages)}
    given = {**os.environ, **folders, **environment}
    done = subprocess.run(command, cwd=packages, env=given, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="levels of x86-64")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_library_of_all_kernels_is_compiled_into_the_named_folder_once(tmp_path):
    said = run([*COMMAND, "--level", "2"], tmp_path, HUDI_FAST_KERNELS="")
    assert 0 < int(said.split()[0]) < 15
    library = Path(said.partition(" kernels in ")[2])
    assert library.is_relative_to(tmp_path / "hudi_fast-kernels")
    assert sorted(path.name for path in library.parent.iterdir()) == ["kernels.json", "kernels.so", "lock"]
    assert run([sys.executable, "-c", HASH], tmp_path, HUDI_FAST_KERNELS="compiled") == "[2147483622, 24] False"
    made = library.stat().st_mtime_ns
    assert run(COMMAND, tmp_path, HUDI_FAST_KERNELS="") == said
    assert library.stat().st_mtime_ns == made


def test_a_library_in_another_folder_does_not_stand_in_for_the_named_one(tmp_path, monkeypatch):
    compiled = []
    monkeypatch.setattr(_ahead, "_levels", lambda: {2: "x86-64-v2"})
    monkeypatch.setattr(_ahead, "asks_for_jit", lambda: False)
    monkeypatch.setattr(_ahead, "fits", lambda folder: folder.is_relative_to(tmp_path / "home"))
    monkeypatch.setattr(_ahead, "compile_library", lambda into, *_: compiled.append(into))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "hudi_fast-kernels" / _ahead.cache_key()).mkdir(parents=True)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "named"))
    _ahead.compile_into_cache(compiler=sys.executable)
    assert compiled == [tmp_path / "named" / "hudi_fast-kernels" / _ahead.cache_key()]


def test_a_level_that_the_kind_of_machine_does_not_have_is_refused_before_anything_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(_ahead, "_levels", lambda: {2: "x86-64-v2", 3: "x86-64-v3"})
    with pytest.raises(RuntimeError, match=f"Processors of the kind {platform.machine()} have no level 9, only "):
        _ahead.compile_library(tmp_path / "library", [9])
    assert not (tmp_path / "library").exists()


@pytest.mark.long
def test_numba_compiles_all_kernels_into_the_named_folder_where_there_is_no_c_compiler(tmp_path):
    said = run(COMMAND, tmp_path, copy_package, HUDI_FAST_KERNELS="", PATH=str(tmp_path))
    count, _, folder = said.partition(" kernels in ")
    assert folder.startswith(str(tmp_path / "hudi_fast-kernels"))
    assert len(list(Path(folder).glob("*.nbi"))) == int(count) >= 15
    assert run(COMMAND, tmp_path, HUDI_FAST_KERNELS="", PATH=str(tmp_path)) == said
