"""Five tasks of a newcomer: hudi_fast, delta-rs and Apache Hudi's jar give the same answers; the page has the counts.

:mod:`tests.recipes.first_hour.run` measures them and prints the table of the page.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.docs.test_docs import PAGES
from tests.recipes.environments import make_environment
from tests.recipes.first_hour.run import (
    HERE,
    Measured,
    commands_of,
    lines_of,
    measure,
    measure_move,
    table_of,
    tasks_of,
)

ROOT = Path(__file__).parents[2]
ANSWERS = {
    "first_rows": "[(1, 9.5), (3, 8.0)]",
    "daily_csv": "(102000, 3548250.0)",
    "slow_read": "(20, 1, 102)",
    "undo": "(102000, 3548250.0)",
    "move_job": "(102000, 3548250.0)",
}


def answers(found: list[Measured]) -> dict[str, str]:
    return {one.task: one.answer for one in found}


def venv_of(name: str) -> Path:
    """An environment that ``make setup`` makes."""
    folder = ROOT / name
    if not folder.exists():
        pytest.skip(f"make setup makes {name}.")
    return folder


@pytest.mark.slow
def test_the_tasks_of_hudi_fast_have_their_answers(tmp_path: Path) -> None:
    found = answers(measure("hudi_fast", tmp_path / "work", tasks_of("hudi_fast"), {}, Path(sys.prefix)))
    assert found == {task: ANSWERS[task] for task in ("first_rows", "daily_csv", "slow_read", "undo")}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_delta_rs_gives_the_same_answers(tmp_path: Path) -> None:
    venv = make_environment("deltalake", ["deltalake>=1.2"]).parents[1]
    found = answers(measure("deltalake", tmp_path / "work", tasks_of("deltalake"), {}, venv))
    assert found == {task: ANSWERS[task] for task in ("first_rows", "daily_csv", "undo")}


@pytest.mark.long
@pytest.mark.peer
@pytest.mark.timeout(1800)
def test_apache_hudis_jar_gives_the_same_answers(java: str, tmp_path: Path) -> None:
    found = answers(measure("hudi_jar", tmp_path / "work", tasks_of("hudi_jar"), {}, venv_of(".venv-hudi")))
    assert found == {task: ANSWERS[task] for task in ("first_rows", "daily_csv", "undo", "move_job")}


@pytest.mark.long
@pytest.mark.peer
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_a_job_moves_from_the_jar_and_back(java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv, with_spark = venv_of(".venv-spark35"), venv_of(".venv-hudi")  # the first one sees the PySpark of the other
    monkeypatch.setenv("PATH", f"{with_spark / 'bin'}{os.pathsep}{os.environ['PATH']}")
    measure("hudi_jar", tmp_path / "work", (), {}, venv)
    moved, after_the_way_back = measure_move(tmp_path / "work", {}, install=False)
    assert answers(moved) == {"move_job": ANSWERS["move_job"]}
    assert after_the_way_back == ANSWERS["move_job"]


def test_the_job_moves_by_an_import_and_a_line() -> None:
    before, after = ((HERE / side / "move_job.py").read_text().splitlines() for side in ("hudi_jar", "hudi_fast"))
    more = [line for line in after if line not in before and not line.startswith("#")]
    assert more == ["import hudi_fast as hf", "hf.accelerate(spark)"]
    assert [line for line in before if line not in after and not line.startswith("#")] == []


def test_the_page_has_the_commands_and_lines_of_the_scripts() -> None:
    sides = ("hudi_fast", "deltalake", "hudi_jar")
    scripts = [(side, script) for side in sides for script in sorted((HERE / side).glob("*.sh"))]
    counted = [
        Measured(script.stem, side, commands_of(script), lines_of(script.with_suffix(".py")), 0.0, 0.0, "")
        for side, script in scripts
    ]
    shown = PAGES["recipes"].splitlines()
    for line in table_of(counted).splitlines()[2:]:
        counts = [cell.strip().rpartition(",")[0] for cell in line.strip("|").split("|")[1:]]
        (row,) = [one for one in shown if one.startswith(line.partition(" |")[0] + " |")]
        assert [cell.strip().rpartition(",")[0] for cell in row.strip("|").split("|")[1:]] == counts, row


def test_commands_and_lines_are_counted_without_comments(tmp_path: Path) -> None:
    script, program = tmp_path / "a.sh", tmp_path / "a.py"
    script.write_text("# why\npip install \\\n    x\n\npython a.py\n")
    program.write_text("# why\n\nimport sys\nprint(1)  # so\n")
    assert (commands_of(script), lines_of(program), lines_of(tmp_path / "none.py")) == (2, 2, 0)
