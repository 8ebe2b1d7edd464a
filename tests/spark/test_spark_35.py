"""The oldest PySpark that the library runs on, in its own environment (``make setup``)."""

from programs import run_program

OLD = "3.5."


def test_every_plan_on_spark_35(java, tmp_path, request):
    python = request.config.rootpath / ".venv-spark35" / "bin" / "python"
    (version,) = run_program("every_plan", tmp_path, python=python)
    assert version.startswith(OLD)
