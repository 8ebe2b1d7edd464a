"""Writes, reads and services leave no descriptor and no thread behind: a process may do them for months.

Python's garbage collector is off meanwhile. It runs seldom in a large process, and what only it closes stays open.

Modules: hudi_fast.storage.base, hudi_fast.storage.forks.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from tests.servers.object_stores import start_azurite, start_fake_gcs
from tests.servers.s3 import ServerError
from tests.support.descriptors import open_things
from tests.support.jvm import FETCHED
from tests.support.small_tables import OPTIONS, plain_rows

TURNS = 12
SPARE = 6
"""Descriptors and threads that a pool of connections may have more at one time than at another."""


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


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

    def test_of_amazon_s3(self, s3_server: Any, options: dict[str, Any]) -> None:
        assert_nothing_stays_open(s3_server.path(f"open-{len(options)}"), dict(s3_server.options), options)

    @pytest.mark.server
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("start", "scheme"), [(start_fake_gcs, "gs"), (start_azurite, "abfs")], ids=["gcs", "azure"]
    )
    def test_of_another_store(self, start: Any, scheme: str, tmp_path: Path, options: dict[str, Any]) -> None:
        try:
            with start(FETCHED, tmp_path) as reach:
                assert_nothing_stays_open(f"{scheme}://tables/t", dict(reach), options)
        except ServerError as error:
            pytest.skip(str(error))


def refused(path: str) -> None:
    with suppress(hf.HudiError):
        hf.write(plain_rows(range(3)), path, {**OPTIONS, "hoodie.datasource.write.recordkey.field": "name"})


def written(path: str, **options: Any) -> None:
    hf.write(plain_rows(range(20), ts=2), path, {**OPTIONS, **options})


ACTS: dict[str, Callable[[str], Any]] = {
    "write": written,
    "refused write": refused,
    "inline compaction": lambda path: written(path, **{"hoodie.compact.inline": "true"}),
    "archiving": lambda path: written(path, **{"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}),
    "read": lambda path: hf.HudiTable(path).to_arrow(),
    "batches": lambda path: list(hf.HudiTable(path).scan().to_batches()),
    "compaction": lambda path: hf.HudiTable(path).services.compact(),
    "clustering": lambda path: (hf.HudiTable(path).services.compact(), hf.HudiTable(path).services.cluster()),
    "cleaning": lambda path: hf.HudiTable(path).services.clean(),
    "rollback": lambda path: hf.HudiTable(path).services.rollback(),
    "validation": lambda path: hf.HudiTable(path).services.validate(),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_no_object_of_ours_waits_for_the_garbage_collector(act: Callable[[str], Any], tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for turn in range(5):
        hf.write(
            plain_rows(range(20), ts=turn), path, {**OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
        )
    gc.collect()
    act(path)
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        left = [type(one).__qualname__ for one in gc.garbage if type(one).__module__.startswith("hudi_fast")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert left == []
