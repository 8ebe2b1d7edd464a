"""Sessions of other kinds, each in a process of its own."""

from tests.spark.programs import run_program


def test_every_plan_on_spark_35(java, tmp_path, request):
    """The oldest PySpark that the library runs on, in its own environment (``make setup``)."""
    python = request.config.rootpath / ".venv-spark35" / "bin" / "python"
    (line,) = run_program("every_plan", tmp_path, python=python)
    assert line.startswith("pyspark.sql.session 3.5.")


def test_every_plan_on_spark_connect(java, tmp_path):
    (line,) = run_program("every_plan", tmp_path, "connect")
    assert line.startswith("pyspark.sql.connect.session 4.")
