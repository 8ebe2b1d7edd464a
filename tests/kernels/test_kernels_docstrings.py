"""Every public kernel says what each of its parameters is."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest
from hudi_fast.kernels._kernel import Kernel

from hudi_fast import kernels

PUBLIC = sorted(
    (module.name, name)
    for module in pkgutil.iter_modules(kernels.__path__)
    if not module.name.startswith("_")
    for name in importlib.import_module(f"hudi_fast.kernels.{module.name}").__all__
)


def test_public_names_are_found():
    assert ("bloom", "bloom_probe") in PUBLIC
    assert ("key_table", "KeyTable") in PUBLIC


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_parameters_are_described(module, name):
    value = getattr(importlib.import_module(f"hudi_fast.kernels.{module}"), name)
    function = value.function if isinstance(value, Kernel) else value
    if not callable(function):
        return
    text = inspect.getdoc(value) or ""
    for parameter in inspect.signature(function).parameters:
        assert f"{parameter}:" in text or f"``{parameter}``" in text or parameter in text.split("\n")[0], parameter
