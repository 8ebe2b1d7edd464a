"""What ``import hudi_fast`` gives, and what it costs."""

from __future__ import annotations

import importlib
import pkgutil
import pydoc
import subprocess
import sys

import pytest

import hudi_fast as hf

HEAVY = ("pyspark", "numba", "llvmlite", "pyarrow", "pandas", "fastavro", "numpy", "click", "rich")


def modules() -> list[str]:
    names = [found.name for found in pkgutil.walk_packages(hf.__path__, "hudi_fast.")]
    kernels = importlib.import_module("hudi_fast.kernels")
    names += [found.name for found in pkgutil.iter_modules(kernels.__path__, "hudi_fast.kernels.")]
    return sorted(set(names))


def test_every_public_name_can_be_imported() -> None:
    assert [name for name in hf.__all__ if getattr(hf, name, None) is None] == []
    assert sorted(hf.__all__) == hf.__all__
    assert set(dir(hf)) == {*hf.__all__, "__version__"}
    assert hf.__version__[0].isdigit()


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        hf.nope  # noqa: B018


def test_all_errors_are_public_and_of_one_tree() -> None:
    errors = importlib.import_module("hudi_fast.errors")
    assert set(errors.__all__) <= set(hf.__all__)
    for name in errors.__all__:
        assert issubclass(getattr(hf, name), hf.HudiWarning if name == "HudiWarning" else hf.HudiError)


def loaded_after(code: str) -> set[str]:
    code += "; import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split()) & set(HEAVY)


def test_importing_the_package_loads_none_of_the_heavy_libraries() -> None:
    assert loaded_after("import hudi_fast") == set()


@pytest.mark.slow
def test_the_table_object_loads_no_pyspark() -> None:
    assert "pyspark" not in loaded_after("from hudi_fast import HudiTable, read, write")
    assert loaded_after("from hudi_fast.errors import HudiError") == set()


def test_every_module_imports_and_names_what_it_gives() -> None:
    found = {name: importlib.import_module(name) for name in modules()}
    plain = {name: module for name, module in found.items() if not hasattr(module, "__path__")}
    assert [name for name, module in plain.items() if not module.__doc__] == []
    named = [(name, module, each) for name, module in plain.items() for each in module.__all__]
    assert [f"{name}.{each}" for name, module, each in named if not hasattr(module, each)] == []


def test_help_on_the_package_lists_the_calls() -> None:
    text = pydoc.plaintext.document(hf.HudiTable)
    for method in ("to_arrow", "to_batches", "upsert", "delete", "insert_overwrite", "history"):
        assert method in text
