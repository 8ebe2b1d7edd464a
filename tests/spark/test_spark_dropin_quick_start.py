"""The quick start, unchanged: Apache Hudi 1.2.0 gave the answers (quick_start_answers.txt), hudi_fast gives them too.

``tests/interop/test_interop_dropin.py`` runs it on Apache Hudi again.
"""

from pathlib import Path

import pytest

import hudi_fast as hf
from tests.spark.programs import run_program
from tests.spark.quick_start import keyed, keyless

ANSWERS = (Path(__file__).parent / "quick_start_answers.txt").read_text(encoding="utf-8")


def expected(table_type, first_title, last_title):
    """The answers of one table type between two titles, the second left out."""
    lines = ANSWERS.partition(f"{table_type}\n")[2].splitlines()
    start = lines.index(f"-- {first_title}")
    return lines[start : lines.index(f"-- {last_title}") if last_title else None]


def test_a_first_day_in_this_session(spark, tmp_path, capsys):
    session = spark.newSession()
    hf.accelerate(session)
    keyless(session, str(tmp_path / "keyless"), "COPY_ON_WRITE")
    assert capsys.readouterr().out.splitlines() == expected("COPY_ON_WRITE", "dear rides", "late news loses")


@pytest.mark.long
def test_a_second_day_in_this_session(spark, tmp_path, capsys):
    session = spark.newSession()
    hf.accelerate(session)
    keyed(session, str(tmp_path / "keyed"), "MERGE_ON_READ")
    assert capsys.readouterr().out.splitlines() == expected("MERGE_ON_READ", "late news loses", None)


@pytest.mark.long
@pytest.mark.timeout(660)
@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_a_first_day_in_a_process_of_its_own(java, tmp_path, kind):
    assert run_program("quick_start", tmp_path, kind, seconds=600) == ANSWERS.splitlines()


@pytest.mark.long
@pytest.mark.timeout(660)
def test_a_first_day_on_spark_35(java, tmp_path, request):
    python = request.config.rootpath / ".venv-spark35" / "bin" / "python"
    assert run_program("quick_start", tmp_path, "classic", python=python, seconds=600) == ANSWERS.splitlines()
