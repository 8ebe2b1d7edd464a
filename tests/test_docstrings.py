"""Docstrings of all public names: present, complete in their parameters, and with examples that run."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hudi_fast.kernels._declared import Helper
from hudi_fast.kernels._kernel import Kernel

import hudi_fast as hf
from hudi_fast.table.inspection import TableInspection
from hudi_fast.table.reads import TableReads
from hudi_fast.table.recovery import RecoveryServices
from hudi_fast.table.services import TableServices

ROOT = Path(__file__).parents[1]


def sources() -> dict[str, Path]:
    """Files of the package and of the kernels by module name; those with a leading underscore are internal."""
    found = {}
    for folder, prefix in ((ROOT / "hudi_fast", ("hudi_fast",)), (ROOT / "kernels", ("hudi_fast", "kernels"))):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            if not any(part.startswith("_") for part in parts):
                found[".".join((*prefix, *parts))] = path
    return dict(sorted(found.items()))


SOURCES = sources()
WITH_EXAMPLE = {TableReads: hf.HudiTable, TableInspection: hf.HudiTable, RecoveryServices: TableServices}
"""Classes whose methods use the names that the example of another class defines."""


def public_values(module: ModuleType) -> dict[str, Any]:
    """The names in ``__all__`` that the module defines itself; kernels as the functions that they compile."""
    values = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    functions = {name: one.function if isinstance(one, Kernel | Helper) else one for name, one in values.items()}
    return {
        name: one for name, one in functions.items() if getattr(one, "__module__", module.__name__) == module.__name__
    }


def undescribed_constants(module: ModuleType) -> set[str]:
    """Names assigned at the top of a module without a string below, or a comment at, their block of assignments."""
    lines = SOURCES[module.__name__].read_text(encoding="utf-8").splitlines()
    undescribed: set[str] = set()
    block: set[str] = set()
    end = -1
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.lineno == end + 1:
            undescribed -= block
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            block = names | (block if node.lineno == end + 1 else set())
            undescribed |= names
            if "#" in lines[node.lineno - 1] or lines[node.lineno - 2].startswith("#"):
                undescribed -= block
            end = node.end_lineno or -1
    return undescribed


def described(value: Any) -> str:
    """The docstring of a function or a class; "" if there is none, or a dataclass made it."""
    text = (value.__doc__ if isinstance(value, type) else inspect.getdoc(value)) or ""
    return "" if isinstance(value, type) and text.startswith(f"{value.__name__}(") else text


def functions_of(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Public functions, and public methods of public classes."""
    for name, value in public_values(module).items():
        if inspect.isfunction(value):
            yield name, value
        if not inspect.isclass(value):
            continue
        for method, member in vars(value).items():
            inner = getattr(member, "__func__", getattr(member, "fget", member))
            if not method.startswith("_") and inspect.isfunction(inner):
                yield f"{name}.{method}", getattr(value, method) if inspect.isfunction(member) else inner


def test_every_public_name_is_described() -> None:
    missing = []
    for name in SOURCES:
        module = importlib.import_module(name)
        values = public_values(module)
        here = [one for one, value in values.items() if inspect.isclass(value) and not described(value)]
        here += [one for one, value in functions_of(module) if not described(value)]
        here += sorted(undescribed_constants(module) & set(values)) + ([] if module.__doc__ else ["__doc__"])
        missing += [f"{name}: {one}" for one in here]
    assert missing == []


def test_parameters_are_described_or_obvious_from_one_line() -> None:
    """A docstring of several paragraphs that describes parameters describes all of them."""
    missing = []
    for name, value in (found for module in SOURCES for found in functions_of(importlib.import_module(module))):
        function = f"{value.__module__}.{name}"
        text = described(value)
        parameters = [one for one in inspect.signature(value).parameters if one not in ("self", "cls")]
        if "Args:" in text:
            missing += [f"{function}: {one}" for one in parameters if f"{one}:" not in text]
        elif len(parameters) >= 3 and len(text.split("\n\n")[0].splitlines()) > 2:
            missing += [f"{function}: {one}" for one in parameters if one not in text]
    assert missing == []


@pytest.mark.slow(
    but=(
        "hudi_fast.arrow_input",
        "hudi_fast.monitoring.progress",
        "hudi_fast.reading.inspecting.results",
        "hudi_fast.checking",
        "hudi_fast.local_sql.sql",
    )
)
@pytest.mark.parametrize("name", [name for name, path in SOURCES.items() if ">>>" in path.read_text(encoding="utf-8")])
def test_examples_run(name: str) -> None:
    """Examples of methods use the names that the example of their class defines."""
    module = importlib.import_module(name)
    runner, tried = doctest.DocTestRunner(), 0
    for found in doctest.DocTestFinder().find(module):
        owner = getattr(module, found.name.removeprefix(f"{name}.").split(".")[0], None)
        if found.examples and inspect.isclass(owner) and found.name.count(".") > name.count(".") + 1:
            found.globs.update(names_of_example(WITH_EXAMPLE.get(owner, owner)))
        tried += runner.run(found).attempted
    assert tried
    assert runner.failures == 0


def names_of_example(cls: type) -> dict[str, object]:
    """The names that the example in the docstring of a class defines."""
    names: dict[str, object] = {}
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(cls) or ""):
        exec(example.source, names)
    return names


@pytest.mark.parametrize(
    ("cls", "calls"),
    [
        (hf.HudiTable, "open create write upsert merge update delete to_arrow to_batches incremental history explain"),
        (TableServices, "compact cluster clean index rollback savepoint validate pending"),
    ],
)
def test_the_most_used_calls_have_examples(cls: type, calls: str) -> None:
    assert [one for one in calls.split() if ">>>" not in (inspect.getdoc(getattr(cls, one)) or "")] == []
