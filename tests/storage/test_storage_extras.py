"""Packages of extras are imported on demand, or named."""

from __future__ import annotations

import json

import pytest

from hudi_fast.errors import ConfigError
from hudi_fast.storage.extras import import_extra


def test_an_installed_package_is_imported() -> None:
    assert import_extra("json", "s3", "A table at s3://") is json


def test_a_missing_package_is_named_with_the_extra_that_brings_it() -> None:
    with pytest.raises(
        ConfigError, match=r"^A table at x:// requires the package no_such_package: pip install 'hudi-fast\[x\]'"
    ):
        import_extra("no_such_package.client", "x", "A table at x://")
