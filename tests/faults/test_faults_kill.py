"""A writer that is killed for real, at a random moment."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hudi_fast as hf
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

pytestmark = pytest.mark.slow

WRITER = """
import sys
sys.path[:0] = {path!r}
from tests.support.small_tables import options, plain_rows
import hudi_fast as hf
for turn in range(1, 100000):
    operation = ("upsert", "insert_overwrite", "delete")[turn % 3]
    rows = plain_rows(range(turn % 7, 12), ts=turn, text=f"t{{turn}}-")
    hf.write(rows, {table!r}, options(operation=operation))
    print(turn, flush=True)
"""


def expected_rows(turn: int, before: dict) -> dict:
    rows = {row["id"]: (row["part"], row["ts"], row["text"]) for row in _rows(turn).to_pylist()}
    if turn % 3 == 0:
        return {**before, **rows}
    if turn % 3 == 1:
        touched = {row[0] for row in rows.values()}
        return {**{key: row for key, row in before.items() if row[0] not in touched}, **rows}
    return {key: row for key, row in before.items() if key not in rows}


def _rows(turn: int):
    return plain_rows(range(turn % 7, 12), ts=turn, text=f"t{turn}-")


@pytest.mark.slow
@pytest.mark.smoke
def test_a_killed_writer_leaves_a_table_between_two_of_its_commits(tmp_path: Path) -> None:
    chance = random.Random(11)
    for number in range(4):
        table = tmp_path / str(number)
        hf.write(plain_rows(range(20), ts=0), table, options())
        states = [table_rows(table)]
        code = WRITER.format(path=sys.path, table=str(table))
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "1\n"
            time.sleep(chance.uniform(0, 0.15))
            writer.kill()
            told = [1, *map(int, writer.stdout.read().split())]
        for turn in range(1, told[-1] + 2):
            states.append(expected_rows(turn, states[-1]))
        seen = table_rows(table)
        assert seen in states[-2:]  # what it told, or one more that it could not tell any more
        hf.write(plain_rows([3], ts=10**6, text="z"), table, options())
        assert table_rows(table) == {**seen, "k00003": ("p1", 10**6, "z3")}
        assert_tidy(table)
