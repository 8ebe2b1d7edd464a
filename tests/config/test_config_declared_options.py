"""The options that the modules of options declare: one entry per key, found by each spelling, with valid defaults.

Modules: hudi_fast.config.accepted_options, hudi_fast.config.concurrency_options.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TypeGuard

import pytest

import hudi_fast
from hudi_fast.config.option_fields import Kind, Option, option_of_field
from hudi_fast.config.options import OPTIONS, find_option
from hudi_fast.errors import UnsupportedFeatureError

PACKAGE = Path(hudi_fast.__file__).parent
MODULES = [import_module(f"hudi_fast.config.{path.stem}") for path in (PACKAGE / "config").glob("*_options.py")]
DEFINED = [
    option
    for module in MODULES
    for name in module.__all__
    if name.endswith("_OPTIONS")
    for option in getattr(module, name)
]


def test_the_registry_holds_every_declared_option_once() -> None:
    assert len(DEFINED) == len(set(DEFINED)) == len(OPTIONS)
    assert set(DEFINED) == set(OPTIONS)


def test_no_spelling_belongs_to_two_options() -> None:
    spellings = [key for option in DEFINED for key in option.keys]
    assert len(spellings) == len(set(spellings))


def test_options_are_found_by_each_spelling() -> None:
    spelled = [(option, key) for option in DEFINED for key in option.keys]
    assert [key for option, key in spelled if find_option(key) != option] == []


def test_descriptions_are_sentences() -> None:
    assert [option.key for option in DEFINED if not option.doc.endswith((".", "`", ")"))] == []


def test_defaults_are_valid() -> None:
    given = [one for one in DEFINED if one.default is not None and one.kind is not Kind.FUNCTION]
    assert [option.key for option in given if option.parse(option.default) != option.default] == []
    for option in given:
        if option.supported != ():
            option.check_supported(option.default)


def test_refused_options_name_themselves() -> None:
    refused = [one for one in DEFINED if one.supported == ()]
    assert refused
    for option in refused:
        with pytest.raises(UnsupportedFeatureError, match=option.key.replace(".", r"\.")):
            option.check_supported(_some_value(option))


SAME_WITH_ALL_VALUES = {
    "hoodie.write.record.merge.custom.implementation.classes": "the merge mode and the strategy id choose the merge",
    "hoodie.parquet.writelegacyformat.enabled": "AUTO and false mean the same encoding",
    "hoodie.read.blob.inline.mode": "descriptors of inline blobs exist in Lance files only",
}
"""Options with several supported values that all lead to the same files and rows, and why."""


def test_every_honoured_option_is_read_somewhere() -> None:
    """Its field is read in the code, or its key; or only one value is supported, which is what happens anyway.

    A field counts as read where any attribute of its name is read, so a name that is used for something else hides a
    dead option.
    """
    attributes, texts = _names_in_code()
    fields = dict(_bound_fields())
    dead = [
        option.key
        for option in DEFINED
        if option.honoured
        and (option.supported is None or len(option.supported) > 1)
        and option.key not in SAME_WITH_ALL_VALUES
        and not any(name in attributes for name in fields.get(option.key, ()))
        and not any(_tail(key) in texts for key in option.keys)
    ]
    assert dead == []


def _tail(key: str) -> str:
    """What code names of a key: the options of a timestamp key generator are used without their prefix."""
    return key.removeprefix("hoodie.keygen.timebased.")


def _bound_fields() -> Iterator[tuple[str, list[str]]]:
    """Keys with the names of the fields that are bound to them."""
    found: dict[str, list[str]] = {}
    for path in (PACKAGE / "config").glob("*.py"):
        module = import_module(f"hudi_fast.config.{path.stem}")
        for one in vars(module).values():
            if inspect.isclass(one) and dataclasses.is_dataclass(one) and one.__module__ == module.__name__:
                for field in dataclasses.fields(one):
                    option = option_of_field(field)
                    if option is not None:
                        found.setdefault(option.key, []).append(field.name)
    yield from found.items()


@cache
def _names_in_code() -> tuple[frozenset[str], str]:
    """The attributes that code reads, identifiers in texts included (``getattr``); and all other texts, joined."""
    names: set[str] = set()
    texts: list[str] = []
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        bindings = {id(node.args[0]) for node in ast.walk(tree) if _is_binding(node) and node.args}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bindings:
                if " " not in node.value:
                    texts.append(node.value)
                    names.add(node.value)
    return frozenset(names), "\n".join(texts)


def _is_binding(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("Option", "bound", "option", "same_option")
    )


def _some_value(option: Option) -> object:
    if option.choices:
        return option.choices[0]
    return {Kind.BOOL: True, Kind.INT: 1, Kind.FLOAT: 1.0}.get(option.kind, "x")
