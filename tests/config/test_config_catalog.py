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
    write,
)
from hudi_fast.config.option_descriptor import Kind, Option
from hudi_fast.config.options import OPTIONS, find_option
from hudi_fast.errors import UnsupportedFeatureError

MODULES = (
    *(accepted, archive, bootstrap, cdc, clean, clustering, files, index),
    *(limited, lock, read, services, stream, write),
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


@pytest.mark.parametrize("option", DEFINED, ids=lambda option: option.key)
def test_an_option_is_found_by_each_spelling_and_its_default_is_valid(option: Option) -> None:
    assert [find_option(key) for key in option.keys] == [option] * len(option.keys)
    assert option.doc.endswith((".", "`", ")"))
    if option.default is not None and option.kind is not Kind.FUNCTION:
        assert option.parse(option.default) == option.default
        if option.supported != ():
            option.check_supported(option.default)


@pytest.mark.parametrize("option", [one for one in DEFINED if one.supported == ()], ids=lambda option: option.key)
def test_a_refused_option_names_itself(option: Option) -> None:
    value = (
        option.choices[0] if option.choices else {Kind.BOOL: True, Kind.INT: 1, Kind.FLOAT: 1.0}.get(option.kind, "x")
    )
    with pytest.raises(UnsupportedFeatureError, match=option.key.replace(".", r"\.")):
        option.check_supported(value)
