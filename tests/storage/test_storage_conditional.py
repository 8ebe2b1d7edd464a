"""Conditional writes: on this machine, on a real S3 server and on moto they answer alike."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.storage.conditional import ConditionalStore
from tests.servers.object_stores import start_azurite, start_fake_gcs
from tests.servers.s3 import ServerError, start_s3
from tests.support.jvm import FETCHED
from tests.support.small_tables import options, plain_rows

SERVER = pytest.mark.server
PLACES = [
    "local",
    pytest.param("versitygw", marks=SERVER),
    *(pytest.param(name, marks=[SERVER, pytest.mark.long]) for name in ("moto", "gcs", "azure")),
]


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    folder = tmp_path_factory.mktemp("conditional")
    if request.param == "local":
        yield Storage(folder)
        return
    try:
        if request.param == "gcs":
            with start_fake_gcs(FETCHED, folder) as reach:
                yield Storage("gs://tables/conditional", reach)
        elif request.param == "azure":
            with start_azurite(FETCHED, folder) as reach:
                yield Storage("abfs://tables/conditional", reach)
        else:
            with start_s3(FETCHED, folder, request.param) as server:
                yield Storage(server.path("conditional"), server.options)
    except ServerError as error:
        pytest.skip(str(error))


@pytest.fixture
def store(place: Storage, request: pytest.FixtureRequest) -> ConditionalStore:
    return place.rooted_at(place.fs_path(request.node.originalname)).conditional()


def test_a_file_is_created_once(store: ConditionalStore) -> None:
    assert store.read("a/b") is None
    version = store.create("a/b", b"1")
    assert version is not None
    assert store.create("a/b", b"2") is None
    found = store.read("a/b")
    assert found is not None
    assert (found.data, found.version) == (b"1", version)


def test_a_file_is_replaced_in_the_state_that_was_seen_alone(store: ConditionalStore) -> None:
    first = store.create("a", b"1")
    assert first is not None
    second = store.replace("a", b"2", first)
    assert second is not None
    assert second != first
    assert store.replace("a", b"3", first) is None
    found = store.read("a")
    assert found is not None
    assert (found.data, found.version) == (b"2", second)


def test_a_file_that_is_gone_is_not_replaced(store: ConditionalStore, place: Storage) -> None:
    assert store.replace("none/at/all", b"1", '"0"') is None
    version = store.create("a", b"1")
    assert version is not None
    assert place.delete_file("test_a_file_that_is_gone_is_not_replaced/a")
    assert store.replace("a", b"2", version) is None
    assert store.read("a") is None


def test_of_several_at_once_one_creates_and_one_replaces(store: ConditionalStore) -> None:
    barrier = threading.Barrier(6)

    def create(number: int) -> str | None:
        barrier.wait()
        return store.create("raced", b"0 by %d" % number)

    def replace(number: int) -> str | None:
        barrier.wait()
        assert version is not None
        return store.replace("raced", b"%d by %d" % (turn, number), version)

    with ThreadPoolExecutor(6) as pool:
        for turn in range(3):
            found = store.read("raced")
            version = None if found is None else found.version
            answers = list(pool.map(create if version is None else replace, range(6)))
            winners = [number for number, answer in enumerate(answers) if answer is not None]
            assert len(winners) == 1
            now = store.read("raced")
            assert now is not None
            assert now.version == answers[winners[0]]
            assert now.data == b"%d by %d" % (turn, winners[0])


@pytest.mark.long
def test_tables_are_written_wherever_there_are_conditions(place: Storage) -> None:
    for turn in range(2):
        hf.write(
            plain_rows(range(turn * 3, turn * 3 + 5), ts=turn),
            f"{place.uri}/t",
            options(),
            storage_options=place.options,
        )
    table = hf.HudiTable.open(f"{place.uri}/t", place.options)
    assert table.to_arrow().num_rows == 8
    table.services.cluster(options=options())
    assert table.to_arrow().num_rows == 8
    assert place.rooted_at(place.fs_path("t")).list_dir("p0")
    assert {one.path for one in place.list_dir("t")} == {"t/.hoodie", "t/p0", "t/p1"}
    assert place.delete_dir("t")
    assert place.list_dir("t", recursive=True) == []


def test_files_are_deleted_together_and_a_folder_is_there_as_long_as_it_was_made(place: Storage) -> None:
    place.make_dir("made/inner")
    for name in ("made/inner/a", "made/b c", "free/d"):
        place.write_bytes(name, b"1")
    assert place.has_dir("made/inner")
    assert not place.has_dir("none")
    assert place.has_file("made/b c")
    assert not place.has_file("made/none")
    place.delete_files(["made/inner/a", "made/none", "made/b c", "free/d"])
    assert place.has_dir("made/inner")
    assert not place.has_file("made/inner/a")
    assert not place.has_file("made/b c")
    place.write_bytes("made/inner/e", b"1")
    place.hide_dir("made/inner")
    assert place.has_file("made/inner/e")
    assert place.has_dir("made/inner") == (place.is_local or place.uri.startswith("abfs"))
    place.delete_dir("made")
    assert not place.has_dir("made/inner")


def test_nothing_temporary_is_left_beside(store: ConditionalStore, place: Storage) -> None:
    version = store.create("f/a", b"1")
    store.create("f/a", b"2")
    assert version is not None
    store.replace("f/a", b"3", "another version")
    store.replace("f/a", b"4", version)
    assert [one.name for one in place.list_dir("test_nothing_temporary_is_left_beside/f")] == ["a"]


def test_a_place_without_conditional_writes_says_so() -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(hf.UnsupportedFeatureError, match="memory://"):
        Storage("memory://table").conditional()


def test_a_representation_has_no_secrets(store: ConditionalStore, place: Storage) -> None:
    again = pickle.loads(pickle.dumps(place))
    for one in (store, place, place.options, again, again.options):
        assert "shown-to-nobody" not in repr(one)
    assert dict(again.options) == dict(place.options)
