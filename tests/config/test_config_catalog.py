"""The options of the catalog's modules: one entry per key, found by each spelling, with valid defaults."""

from __future__ import annotations

import pytest

from hudi_fast.config.catalog import (
    accepted,
    archive,
    bootstrap,
    cdc,
    clean,
    clustering,
    files,
    index,
    limited,
    lock,
    read,
    services,
    stream,
    sync,
    write,
)
from hudi_fast.config.option_descriptor import Kind, Option
from hudi_fast.config.options import OPTIONS, find_option
from hudi_fast.errors import UnsupportedFeatureError

MODULES = (
    *(accepted, archive, bootstrap, cdc, clean, clustering, files, index),
    *(limited, lock, read, services, stream, sync, write),
)
DEFINED = [
    option
    for module in MODULES
    for name in module.__all__
    if name.endswith("_OPTIONS")
    for option in getattr(module, name)
]


def test_the_registry_holds_every_option_of_the_catalog_once() -> None:
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


def _some_value(option: Option) -> object:
    if option.choices:
        return option.choices[0]
    return {Kind.BOOL: True, Kind.INT: 1, Kind.FLOAT: 1.0}.get(option.kind, "x")
