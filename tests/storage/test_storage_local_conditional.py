"""Conditional writes in a local folder."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hudi_fast.storage.local_store import LocalConditionalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalConditionalStore:
    return LocalConditionalStore(str(tmp_path))


def test_a_file_is_created_with_its_folders_once(store: LocalConditionalStore, tmp_path: Path) -> None:
    version = store.create("a/b/c", b"1")
    assert store.create("a/b/c", b"2") is None
    found = store.read("a/b/c")
    assert found is not None
    assert (found.data, found.version) == (b"1", version)
    assert os.listdir(tmp_path / "a" / "b") == ["c"]


def test_only_the_version_that_was_read_is_replaced(store: LocalConditionalStore, tmp_path: Path) -> None:
    first = store.create("f", b"1")
    assert first is not None
    second = store.replace("f", b"2", first)
    assert second not in (None, first)
    assert store.replace("f", b"3", first) is None
    assert (tmp_path / "f").read_bytes() == b"2"
    assert os.listdir(tmp_path) == ["f"]


def test_a_missing_file_is_not_replaced(store: LocalConditionalStore) -> None:
    assert store.read("f") is None
    assert store.replace("f", b"1", "any") is None
    assert store.replace("missing/folder/f", b"1", "any") is None


def test_the_same_content_again_is_another_version(store: LocalConditionalStore) -> None:
    first = store.create("f", b"1")
    assert first is not None
    second = store.replace("f", b"1", first)
    assert second not in (None, first)


def test_of_several_threads_one_replaces_each_version(store: LocalConditionalStore) -> None:
    version = store.create("f", b"0")
    with ThreadPoolExecutor(4) as pool:
        for turn in range(20):
            assert version is not None
            tries = [pool.submit(store.replace, "f", b"%d-%d" % (turn, number), version) for number in range(4)]
            (version,) = [made for made in (one.result() for one in tries) if made is not None]
