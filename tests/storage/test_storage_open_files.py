"""Writes, reads and services leave no descriptor and no thread behind: a process may do them for months.

Modules: hudi_fast.storage.base, hudi_fast.storage.thread_pool.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from tests.support.descriptors import open_things
from tests.support.small_tables import OPTIONS, plain_rows

TURNS = 12
SPARE = 6
"""Descriptors and threads that a pool of connections may have more at one time than at another."""


def live_a_turn(path: str | Path, reach: dict[str, Any], options: dict[str, Any], turn: int) -> None:
    hf.write(plain_rows(range(20), ts=turn), path, {**OPTIONS, **options}, storage_options=reach)
    table = hf.HudiTable(path, storage_options=reach)
    assert table.to_arrow(columns=["id"]).num_rows == 20
    assert sum(batch.num_rows for batch in table.scan().to_batches()) == 20
    if turn % 4 == 3:
        table.services.clean()
    if turn % 4 == 3 and options:
        table.services.compact()


def assert_nothing_stays_open(path: str | Path, reach: dict[str, Any], options: dict[str, Any]) -> None:
    found = []
    for turn in range(1, TURNS + 1):
        live_a_turn(path, reach, options, turn)
        found.append(open_things())
    (files, threads), (last_files, last_threads) = found[3], found[-1]
    assert last_files <= files + SPARE, found
    assert last_threads <= threads + SPARE, found


@pytest.mark.parametrize("options", [{}, {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}], ids=["cow", "mor"])
class TestOpenFiles:
    def test_of_a_folder(self, tmp_path: Path, options: dict[str, Any]) -> None:
        assert_nothing_stays_open(tmp_path / "t", {}, options)

    def test_of_an_object_store(self, s3_server: Any, options: dict[str, Any]) -> None:
        assert_nothing_stays_open(s3_server.path(f"open-{len(options)}"), dict(s3_server.options), options)
