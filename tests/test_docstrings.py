"""Docstrings keep what house rules ask: parameters of public functions are described, and examples run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hudi_fast
import hudi_fast.table

CORE = ("view", "merging", "index", "writing", "reading", "storage")


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Public functions of the engine's core, with their full names."""
    for folder in CORE:
        package = importlib.import_module(f"hudi_fast.{folder}")
        for found in pkgutil.walk_packages(package.__path__, f"hudi_fast.{folder}."):
            if found.ispkg:
                continue
            module = importlib.import_module(found.name)
            for name in module.__all__:
                value = getattr(module, name)
                if inspect.isfunction(value):
                    yield f"{found.name}.{name}", value


FUNCTIONS = dict(functions())


def test_there_are_functions() -> None:
    assert len(FUNCTIONS) > 40


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_with_three_parameters_or_more_describes_them(name: str) -> None:
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    assert text
    parameters = list(inspect.signature(FUNCTIONS[name]).parameters)
    if len(parameters) >= 3 and "Args:" in text:
        for parameter in parameters:
            assert f"{parameter}:" in text, parameter


def test_the_table_objects_example_runs() -> None:
    failed, tried = doctest.testmod(hudi_fast.table)
    assert tried >= 6
    assert failed == 0


@pytest.mark.parametrize("name", [name for name in vars(hudi_fast.HudiTable) if not name.startswith("_")])
def test_every_method_of_the_table_object_says_what_it_does(name: str) -> None:
    value = inspect.getattr_static(hudi_fast.HudiTable, name)
    assert inspect.getdoc(value.__func__ if isinstance(value, classmethod) else value)
