"""Compiling, caching and loading: cheap imports, safe caches, strict types."""

from __future__ import annotations

import fcntl
import io
import os
import pickle
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hudi_fast.kernels import _cache, _jit, cache_folder, warm_up
from hudi_fast.kernels._declared import sources_digest
from hudi_fast.kernels._kernel import Kernel, kernel
from hudi_fast.kernels.hashes import list_hash_combine, string_hash_codes

CALL = """
import numpy as np
from hudi_fast.kernels.hashes import list_hash_combine
codes = np.array([2**31 - 1, 1], np.int32)
list_hash_combine(codes, np.array([5, -7], np.int32))
assert codes.tolist() == [2147483622, 24], codes
hits = sum(list_hash_combine.load().stats.cache_hits.values())
"""


def start(program, cache, **environment):
    here = {"NUMBA_CACHE_DIR": str(cache), "HUDI_FAST_KERNELS": "jit", "PYTHONPATH": str(Path(__file__).parents[2])}
    env = os.environ | here | environment
    return subprocess.Popen([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, text=True)


def run(program, cache, **environment):
    process = start(program, cache, **environment)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return out.strip()


def test_importing_every_kernel_module_does_not_import_numba(tmp_path):
    names = [path.stem for path in Path(_jit.__file__).parent.glob("[a-z]*.py")]
    lines = [f"import hudi_fast.kernels.{name}" for name in names]
    assert len(lines) >= 6
    assert run("\n".join([*lines, "import sys; print('numba' in sys.modules)"]), tmp_path) == "False"


@pytest.mark.slow
def test_the_second_process_loads_what_the_first_compiled(tmp_path):
    assert run(CALL + "print(hits)", tmp_path) == "0"
    assert run(CALL + "print(hits)", tmp_path) == "1"


@pytest.mark.long
def test_processes_that_start_together_share_one_cache(tmp_path):
    processes = [start(CALL, tmp_path) for _ in range(4)]
    for process in processes:
        process.communicate(timeout=120)
    assert [process.returncode for process in processes] == [0] * 4
    assert run(CALL + "print(hits)", tmp_path) == "1"


@pytest.mark.slow
def test_processes_that_start_together_compile_a_kernel_once(tmp_path):
    processes = [start(CALL + "print(hits)", tmp_path) for _ in range(3)]
    hits = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert sorted(hits) == ["0", "1", "1"]


@pytest.mark.slow
def test_a_process_that_is_stuck_while_it_compiles_holds_up_others_only_for_a_while(tmp_path):
    run(CALL, tmp_path)
    (lock,) = tmp_path.rglob("*.lock")
    with open(lock, "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        impatient = "from hudi_fast.kernels import _jit\n_jit._LONGEST_COMPILATION = 0.1\n"
        assert run(impatient + CALL + "print(hits)", tmp_path) == "1"


@pytest.mark.slow
def test_code_for_a_named_processor_has_a_folder_of_its_own(tmp_path):
    """Code for a common processor runs on this one; its folder does not depend on the machine that compiled it."""
    portable = {
        "NUMBA_CPU_NAME": "x86-64-v2" if platform.machine() == "x86_64" else "generic",
        "NUMBA_CPU_FEATURES": "",
    }
    assert run(CALL + "print(hits)", tmp_path) == "0"
    assert run(CALL + "print(hits)", tmp_path, **portable) == "0"
    assert run(CALL + "print(hits)", tmp_path, **portable) == "1"
    program = "from numba.core.registry import cpu_target\nprint(cpu_target.target_context.codegen().magic_tuple())"
    assert run(program, tmp_path, **portable).endswith(f"'{portable['NUMBA_CPU_NAME']}', '')")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("left", "suffix"),
    [
        (0, "nbi"),
        (40, "nbc"),
        *[pytest.param(*case, marks=pytest.mark.long) for case in ((40, "nbi"), (0, "nbc"))],
    ],
)
def test_a_damaged_cache_file_counts_as_absent_and_is_replaced(tmp_path, left, suffix):
    run(CALL, tmp_path)
    (path,) = tmp_path.rglob(f"*.{suffix}")
    path.write_bytes(path.read_bytes()[:left])
    assert run(CALL + "print(hits)", tmp_path) == "0"
    assert run(CALL + "print(hits)", tmp_path) == "1"


@pytest.mark.slow
def test_without_a_writable_folder_kernels_compile_in_memory(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    program = f"import tempfile\ntempfile.tempdir = {str(blocked / 'x')!r}\n" + CALL
    program += "from hudi_fast.kernels import cache_folder\nprint(cache_folder())"
    assert run(program, blocked / "x", XDG_CACHE_HOME=str(blocked / "x")) == "None"


@pytest.mark.slow
def test_threads_that_call_first_at_once_all_get_the_kernel(tmp_path):
    program = (
        "from concurrent.futures import ThreadPoolExecutor\nimport numpy as np\n"
        "from hudi_fast.kernels.sorting import group_rows\n"
        "codes = np.array([1, 0, 1], np.int32)\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    found = list(pool.map(lambda _: group_rows(codes, 2)[0].tolist(), range(16)))\n"
        "print(found == [[1, 0, 2]] * 16)"
    )
    assert run(program, tmp_path) == "True"


def test_warming_up_loads_every_public_kernel():
    assert warm_up() >= 15
    assert string_hash_codes._compiled is not None


def test_read_only_and_writable_arrays_are_both_inputs():
    offsets, data, out = np.array([0, 2], np.int32), np.frombuffer(b"ab", np.uint8), np.empty(1, np.int32)
    assert not data.flags.writeable
    string_hash_codes(offsets, data, out)
    first = out.tolist()
    string_hash_codes(offsets, data.copy(), out)
    assert out.tolist() == first == [97 * 31 + 98]


def test_other_types_than_declared_are_refused():
    with pytest.raises(TypeError):
        list_hash_combine(np.ones(1, np.int64), np.ones(1, np.int32))
    with pytest.raises(TypeError):
        list_hash_combine(np.ones(4, np.int32)[::2], np.ones(2, np.int32))
    read_only = np.ones(1, np.int32)
    read_only.flags.writeable = False
    with pytest.raises(TypeError):
        list_hash_combine(read_only, np.ones(1, np.int32))


def test_kernels_pickle_by_name():
    assert pickle.loads(pickle.dumps(list_hash_combine)) is list_hash_combine


@pytest.mark.slow("void")
@pytest.mark.parametrize("signature", ["void", "void(q4)", "void(ri3)", "what(ri4)"])
def test_malformed_signatures_are_refused(signature):
    declared = kernel(signature)(lambda values: None)
    assert isinstance(declared, Kernel)
    with pytest.raises(ValueError, match="kernel signature"):
        declared.load()


def test_the_cache_key_follows_the_sources_of_all_modules(tmp_path):
    (tmp_path / "one.py").write_text("a = 1")
    (tmp_path / "two.py").write_text("b = 1")
    before = sources_digest(tmp_path)
    assert sources_digest(tmp_path) == before
    (tmp_path / "two.py").write_text("b = 2")
    assert sources_digest(tmp_path) != before


def test_a_temporary_folder_that_others_may_write_is_not_trusted(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert not _cache._is_private(shared)
    (tmp_path / "link").symlink_to(shared)
    assert not _cache._is_private(tmp_path / "link")
    assert _cache._is_private(tmp_path / "own")


@pytest.mark.parametrize(("mode", "shared", "own"), [(0o755, True, True), (0o775, True, False), (0o777, False, False)])
def test_a_cache_that_others_may_write_is_not_used(tmp_path, monkeypatch, caplog, mode, shared, own):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    for root, used in (("shared", shared), ("home", own)):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "shared")) if root == "shared" else None
        folder = tmp_path / root / "hudi_fast-kernels"
        (folder / "key").mkdir(parents=True)
        folder.chmod(mode)
        caplog.clear()
        assert (folder / "key" in _cache.places("key")) is used
        assert (str(folder) in caplog.text) is not used


def test_new_cache_folders_are_for_their_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    before = os.umask(0)
    try:
        folder = _cache.folder_for("key")
    finally:
        os.umask(before)
    assert [each.stat().st_mode & 0o777 for each in (folder, folder.parent)] == [0o700, 0o700]


@pytest.mark.slow
def test_the_cache_folder_is_the_configured_one_first(tmp_path):
    program = "from hudi_fast.kernels import cache_folder\nprint(cache_folder().parent)"
    assert run(program, tmp_path) == str(tmp_path / "hudi_fast-kernels")
    assert cache_folder() is not None


@pytest.mark.parametrize("person", [True, False])
def test_a_person_is_told_once_why_the_first_calls_take_long(monkeypatch, person):
    screen = io.StringIO()
    screen.isatty = lambda: person
    monkeypatch.setattr(sys, "stderr", screen)
    _jit._tell_of_wait.cache_clear()
    _jit._tell_of_wait()
    _jit._tell_of_wait()
    assert screen.getvalue().count("Numba compiles kernels") == person
