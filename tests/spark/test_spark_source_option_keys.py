"""Options as Spark passes them to a Python data source, without a JVM."""

from __future__ import annotations

import pytest

from hudi_fast.config.options import OPTIONS
from hudi_fast.errors import ConfigError
from hudi_fast.spark_api.source.data_source import base_path, hudi_options
from hudi_fast.spark_api.source.entry import SOURCE_NAME


def test_keys_get_their_spelling_back() -> None:
    mixed = [key for option in OPTIONS for key in option.keys if key != key.lower() and key.startswith("hoodie.")]
    assert mixed
    assert hudi_options({key.lower(): "x" for key in mixed}) == dict.fromkeys(mixed, "x")


def test_options_of_spark_are_left_out() -> None:
    given = {"path": "/t", "header": "true", "as.of.instant": "1", "hoodie.unknown": "2", "hudi_fast.threads": "3"}
    assert hudi_options(given) == {"as.of.instant": "1", "hoodie.unknown": "2", "hudi_fast.threads": "3"}


def test_a_table_needs_a_path() -> None:
    assert base_path({"path": "/t"}) == base_path({"hoodie.base.path": "/t"}) == "/t"
    with pytest.raises(ConfigError, match=rf'format\("{SOURCE_NAME}"\)'):
        base_path({"path": ""})
