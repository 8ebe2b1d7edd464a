"""Where work is executed: values of Spark are known without importing it."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from hudi_fast.arrow_input import is_from_spark
from hudi_fast.writing.backend import BatchSource


def test_values_of_this_process_are_not_from_spark() -> None:
    for value in (None, pa.table({"a": [1]}), [{"a": 1}], BatchSource((), lambda unit: iter(()), pa.schema([]))):
        assert not is_from_spark(value)


def test_values_of_spark_are_known_by_their_module() -> None:
    made = type("Row", (), {"__module__": "pyspark.sql.dataframe"})
    inherited = type("Mine", (made,), {"__module__": "mine"})
    assert is_from_spark(made())
    assert is_from_spark(inherited())


@pytest.mark.slow
def test_the_backend_is_imported_without_spark() -> None:
    code = "import sys, hudi_fast.writing.backend; print('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
