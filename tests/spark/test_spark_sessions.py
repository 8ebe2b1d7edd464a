"""Sessions of other kinds, each in a process of its own."""

import pytest

from tests.spark.programs import run_program


def spark_35(request):
    """The oldest PySpark that the library runs on, in its own environment (``make setup``)."""
    return request.config.rootpath / ".venv-spark35" / "bin" / "python"


def test_every_plan_on_spark_35(java, tmp_path, request):
    (line,) = run_program("every_plan", tmp_path, python=spark_35(request))
    assert line.startswith("pyspark.sql.session 3.5.")


@pytest.mark.long
def test_more_pairs_of_plan_and_operation_on_spark_35(java, tmp_path, request):
    (line,) = run_program("every_plan", tmp_path, "more", python=spark_35(request))
    assert line.startswith("pyspark.sql.session 3.5.")


def test_every_plan_on_spark_connect(java, tmp_path):
    (line,) = run_program("every_plan", tmp_path, "connect")
    assert line.startswith("pyspark.sql.connect.session 4.")


@pytest.mark.long
def test_more_pairs_of_plan_and_operation_on_spark_connect(java, tmp_path):
    (line,) = run_program("every_plan", tmp_path, "connect", "more")
    assert line.startswith("pyspark.sql.connect.session 4.")
