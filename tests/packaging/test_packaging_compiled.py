"""A wheel with compiled kernels: it needs no numba where it runs, and a library that does not fit is not used.

Modules: hudi_fast.kernels._ahead, hudi_fast.kernels._kernel.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hudi_fast.kernels._ahead import processor_level
from hudi_fast.kernels._kernel import compiled

from tests.packaging.builds import CHECKOUT, build_wheel, leave_few_kernels, run
from tests.packaging.test_packaging_wheel import QUICK_START
from tests.support.tiers import is_long

LEVEL = {"x86_64": 2, "aarch64": 0}.get(platform.machine())
HASH = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format="%(message)s")
logging.getLogger("numba").setLevel(logging.WARNING)
import numpy as np
from hudi_fast.kernels.hashes import list_hash_combine

codes = np.array([2**31 - 1, 1], np.int32)
list_hash_combine(codes, np.array([5, -7], np.int32))
print(codes.tolist(), "numba" in sys.modules)
"""

ARGUMENTS = """
import sys
import numpy as np
from hudi_fast.kernels import _kernel
from hudi_fast.kernels.hashes import list_hash_combine

known = _kernel._knows_arrays()
if sys.argv[1] == "unknown":
    _kernel._knows_arrays = lambda: False


class Mine(np.ndarray):
    pass


def combined(codes, others):
    try:
        list_hash_combine(codes, others)
    except TypeError as error:
        return str(error).partition(":")[0]
    return codes.tolist()


def ones(kind=np.int32, count=2):
    return np.ones(count, kind)


frozen = ones()
frozen.flags.writeable = False
unaligned = np.frombuffer(bytearray(9), np.uint8)[1:].view(np.int32)
print(known)
for codes, others in (
    (ones(), ones()),
    (ones(), frozen),
    (ones().view(Mine), ones()),
    (ones(np.intc), ones()),
    (np.ones(4, np.int32)[2:], ones()),
    (ones(count=0), ones(count=0)),
    (ones(np.int64), ones()),
    (ones(">i4"), ones()),
    (frozen, ones()),
    (np.ones(4, np.int32)[::2], ones()),
    (np.ones((2, 2), np.int32)[0:1], ones()),
    (np.int32(1), ones()),
    (unaligned, ones()),
    ([1, 2], ones()),
    (None, ones()),
    (b"12345678", ones()),
):
    print(combined(codes, others))
"""

PROFILE = """\
from hypothesis import settings
from tests.support.examples import register_profiles

register_profiles()
settings.load_profile("dev")
"""

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or LEVEL is None, reason="no library for this kind of machine"),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The wheel, with kernels of the lowest level: all of them in the tier ``long``, otherwise few."""
    if not is_long(request.config):
        sources = shutil.copytree(
            sources, tmp_path_factory.mktemp("few") / "sources", ignore=shutil.ignore_patterns("build", "*.egg-info")
        )
        leave_few_kernels(sources / "kernels")
    return build_wheel(sources, tmp_path_factory.mktemp("compiled"), HUDI_FAST_COMPILE_KERNELS=str(LEVEL))


@pytest.fixture(scope="module")
def packages(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel installs, and the tests of the kernels."""
    folder = tmp_path_factory.mktemp("packages")
    target = ["--target", folder, "--no-deps", "--no-index", wheel]
    run([sys.executable, "-m", "pip", "install", "--quiet", *target], folder)
    without_bytecode = shutil.ignore_patterns("__pycache__")
    for name in ("kernels", "naive", "support"):
        shutil.copytree(CHECKOUT / "tests" / name, folder / "tests" / name, ignore=without_bytecode)
    (folder / "tests" / "__init__.py").touch()
    (folder / "tests" / "conftest.py").write_text(PROFILE)
    shutil.copy2(CHECKOUT / "pyproject.toml", folder)
    return folder


@pytest.fixture
def altered(packages: Path, tmp_path: Path) -> Path:
    """A copy of the installed packages."""
    shutil.copytree(packages / "hudi_fast", tmp_path / "hudi_fast")
    return tmp_path


def called(packages: Path, **environment: str) -> str:
    """The output of a process that calls a kernel of the packages."""
    cache = str(packages / "cache")
    here = {"PYTHONPATH": str(packages), "NUMBA_CACHE_DIR": cache, "XDG_CACHE_HOME": cache}
    return run([sys.executable, "-c", HASH], packages, **here, **environment)


@pytest.mark.slow
def test_the_wheel_is_for_any_python_on_one_kind_of_machine(wheel: Path) -> None:
    assert wheel.name.endswith(f"-py3-none-manylinux_2_17_{platform.machine()}.whl")
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith("/kernels.so"))
        library = archive.read(path)
    needed = {tuple(map(int, version.split(b"."))) for version in re.findall(rb"GLIBC_(\d+\.\d+)", library)}
    assert needed
    assert max(needed) <= (2, 17)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_builds_and_editable_installs_compile_the_kernels_for_this_processor(sources: Path, tmp_path: Path) -> None:
    shutil.copytree(sources, tmp_path / "sources", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    leave_few_kernels(tmp_path / "sources" / "kernels")
    build = "import sys, setuptools.build_meta as backend; backend.build_editable(sys.argv[1])"
    run([sys.executable, "-c", build, tmp_path], tmp_path / "sources", HUDI_FAST_COMPILE_KERNELS="native")
    editable = json.loads((tmp_path / "sources" / "kernels" / "_compiled" / "kernels.json").read_text())
    assert editable["levels"] == [processor_level()]
    built = build_wheel(tmp_path / "sources", tmp_path / "wheel", HUDI_FAST_COMPILE_KERNELS="native")
    assert built.name.endswith(f"-py3-none-linux_{platform.machine()}.whl")
    with zipfile.ZipFile(built) as archive:
        assert json.loads(archive.read("hudi_fast/kernels/_compiled/kernels.json")) == editable


@pytest.mark.slow
def test_a_build_without_a_c_compiler_says_so_and_goes_on(sources: Path, tmp_path: Path) -> None:
    shutil.copytree(sources, tmp_path / "sources", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    command = [sys.executable, "setup.py", "build_py", "--build-lib", tmp_path / "built"]
    without = os.environ | {"HUDI_FAST_COMPILE_KERNELS": "native", "CC": "no-such-compiler"}
    done = subprocess.run(command, cwd=tmp_path / "sources", env=without, capture_output=True, text=True)
    assert done.returncode == 0
    assert "they were not compiled; Numba compiles each at its first call" in done.stderr
    assert not (tmp_path / "built" / "hudi_fast" / "kernels" / "_compiled").exists()


@pytest.mark.slow
def test_a_write_and_a_read_import_no_numba(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """With the kernels of the wheel when it has them all, otherwise with those of this environment."""
    packages = request.getfixturevalue("packages") if is_long(request.config) else CHECKOUT
    code = QUICK_START + "import sys; print('numba' in sys.modules)"
    updated, _, imported = run([sys.executable, "-c", code], tmp_path, PYTHONPATH=str(packages)).splitlines()
    assert updated == "1 1"
    assert imported == "False"


@pytest.mark.long
def test_kernels_pass_their_tests_compiled_ahead_and_by_numba(packages: Path) -> None:
    """The kernels that this process does not use: all but the tests of numba's own compilation.

    Each test compares a kernel with plain Python.
    """
    others = "compiled" if compiled() is None else "jit"
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--deselect"]
    told = run(
        [*pytest_, "tests/kernels/test_kernels_jit.py", "tests/kernels"],
        packages,
        PYTHONPATH=str(packages),
        HUDI_FAST_KERNELS=others,
    )
    assert int(re.findall(r"(\d+) passed", told)[0]) > 300


@pytest.mark.slow
def test_arguments_are_checked_whether_or_not_the_layout_of_arrays_is_known(packages: Path) -> None:
    here = {"PYTHONPATH": str(packages), "HUDI_FAST_KERNELS": "compiled"}
    directly, checked = (
        run([sys.executable, "-c", ARGUMENTS, name], packages, **here).splitlines() for name in ("known", "unknown")
    )
    assert directly == checked
    assert directly[0] == "True"
    assert directly[1:6] == ["[32, 32]"] * 5
    assert directly[6] == "[]"
    assert set(directly[7:]) == {"list_hash_combine takes void(wi4, ri4)"}


def of_other_sources(folder: Path) -> None:
    with open(folder.parent / "bloom.py", "a") as file:
        file.write("# changed\n")


def cut_short(folder: Path) -> None:
    library = folder / "kernels.so"
    library.write_bytes(library.read_bytes()[:-1000])


def tampered_with(folder: Path) -> None:
    library = folder / "kernels.so"
    content = bytearray(library.read_bytes())
    content[len(content) // 2] ^= 1
    library.write_bytes(content)


def without_library(folder: Path) -> None:
    (folder / "kernels.so").unlink()


def manifest_says(**values: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        manifest = folder / "kernels.json"
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | values))

    return change


def manifest_cut_short(folder: Path) -> None:
    manifest = folder / "kernels.json"
    manifest.write_text(manifest.read_text()[:20])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (of_other_sources, "other sources"),
        (cut_short, "kernels.so is damaged"),
        (tampered_with, "kernels.so is damaged"),
        (without_library, "kernels.so"),
        (manifest_cut_short, "cannot be used"),
        (manifest_says(machine="s390x"), "for s390x, and this machine is"),
        (manifest_says(levels=[99]), "a processor of level 99"),
    ],
)
def test_kernels_are_compiled_here_where_the_library_does_not_fit(
    altered: Path, change: Callable[[Path], None], reason: str
) -> None:
    change(altered / "hudi_fast" / "kernels" / "_compiled")
    told, answer = called(altered).splitlines()
    assert reason in told
    assert answer == "[2147483622, 24] True"


@pytest.mark.slow
def test_the_environment_chooses_kernels_that_are_compiled_here(packages: Path) -> None:
    assert called(packages) == "[2147483622, 24] False\n"
    for variable, value in (("HUDI_FAST_KERNELS", "jit"), ("NUMBA_BOUNDSCHECK", "1")):
        assert called(packages, **{variable: value}).endswith("[2147483622, 24] True\n")
