"""Creating an object in a store whose answers are lost, and repeated calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_fast.errors import LockError
from hudi_fast.storage import stores
from hudi_fast.storage.conditional import ThrottledError, Versioned
from hudi_fast.storage.stores import RootedStore, create_confirmed, with_retries


class Objects:
    """An object store in memory; the errors in ``failures`` come first, before or after the object is made."""

    def __init__(self, *failures: tuple[str, OSError]) -> None:
        self.objects: dict[str, tuple[bytes, str]] = {}
        self.failures = list(failures)

    def create(self, name: str, data: bytes, mark: str = "") -> str | None:
        when, error = self.failures.pop(0) if self.failures else ("", OSError())
        if when == "before":
            raise error
        made = name not in self.objects
        if made:
            self.objects[name] = (data, mark)
        if when == "after":
            raise error
        return "1" if made else None

    def mark_of(self, name: str) -> str | None:
        return self.objects[name][1] if name in self.objects else None

    def read(self, name: str) -> Versioned | None:
        return Versioned(self.objects[name][0], "1") if name in self.objects else None

    def replace(self, name: str, data: bytes, version: str) -> str | None:
        self.objects[name] = (data, "")
        return "2"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr(stores.time, "sleep", pauses.append)
    return pauses


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, no_pauses: list[float]) -> list[float]:
    """The pauses, which are all that takes time."""
    monkeypatch.setattr(stores.time, "monotonic", lambda: sum(no_pauses))
    return no_pauses


def test_an_object_is_created_once() -> None:
    store = Objects()
    assert create_confirmed(store, "b/f", b"1") is True
    assert create_confirmed(store, "b/f", b"2") is False
    assert store.objects["b/f"][0] == b"1"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_lost_answer_does_not_hide_who_made_the_object(when: str, times: int) -> None:
    store = Objects(*[(when, OSError("lost"))] * times)
    assert create_confirmed(store, "b/f", b"1") is True
    assert store.objects["b/f"][0] == b"1"


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_object_of_another_writer_is_not_taken_for_the_own_one(when: str) -> None:
    store = Objects((when, OSError("lost")))
    store.objects["b/f"] = (b"theirs", "their mark")
    assert create_confirmed(store, "b/f", b"1") is False


def test_a_store_that_never_answers_raises_its_error() -> None:
    with pytest.raises(OSError, match="lost"):
        create_confirmed(Objects(*[("before", OSError("lost"))] * 9), "b/f", b"1")


def answers(*results: object) -> Callable[[], object]:
    left = list(results)

    def call() -> object:
        result = left.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    return call


def test_a_call_is_repeated_with_growing_pauses(no_pauses: list[float]) -> None:
    assert with_retries(answers(OSError(), OSError(), 7)) == 7
    assert len(no_pauses) == 2
    assert 0.025 <= no_pauses[0] <= 0.05 < 0.2 <= no_pauses[1] <= 0.4


def test_a_store_that_asks_to_slow_down_is_asked_again_for_more_than_a_minute(clock: list[float]) -> None:
    def call() -> str:
        if sum(clock) < 60:
            raise ThrottledError()
        return "done"

    assert with_retries(call) == "done"
    assert max(clock) <= 6.4

    with pytest.raises(ThrottledError):
        with_retries(answers(*[ThrottledError()] * 99))
    assert 60 + 100 < sum(clock) < 60 + 120


def test_a_failure_after_a_slow_down_is_retried_like_any_other(clock: list[float]) -> None:
    assert with_retries(answers(*[ThrottledError()] * 10, OSError(), OSError(), OSError(), 7)) == 7
    assert sum(clock) > 15


def test_retries_after_a_slow_down_end_when_they_are_no_longer_allowed(clock: list[float]) -> None:
    def check() -> None:
        if sum(clock) > 30:
            raise LockError("lost")

    store = Objects(*[("before", ThrottledError())] * 99)
    with pytest.raises(LockError, match="lost"):
        create_confirmed(store, "b/f", b"1", check)
    assert store.objects == {}
    assert 30 < sum(clock) < 40


def test_a_lost_lock_does_not_hide_that_an_outcome_is_unknown(clock: list[float]) -> None:
    def check() -> None:
        raise LockError("lost")

    store = Objects(("before", OSError("no answer")), ("before", ThrottledError()))
    with pytest.raises(OSError, match="unknown"):
        create_confirmed(store, "b/f", b"1", check)
    store = Objects(("before", OSError("no answer")), ("before", PermissionError("expired")))
    with pytest.raises(OSError, match="no answer") as caught:
        create_confirmed(store, "b/f", b"1")
    assert not isinstance(caught.value, PermissionError)
    with pytest.raises(PermissionError):
        create_confirmed(Objects(("before", PermissionError("expired"))), "b/f", b"1")


@pytest.mark.parametrize("error", [FileNotFoundError(), FileExistsError(), PermissionError()])
def test_an_error_that_would_come_again_is_raised_at_once(error: OSError, no_pauses: list[float]) -> None:
    with pytest.raises(type(error)):
        with_retries(answers(error, 7))
    assert no_pauses == []


def test_no_try_begins_late(monkeypatch: pytest.MonkeyPatch, no_pauses: list[float]) -> None:
    times = iter([0.0, 20.0])
    monkeypatch.setattr(stores.time, "monotonic", lambda: next(times))
    with pytest.raises(OSError, match="slow"):
        with_retries(answers(OSError("slow"), 7))
    assert no_pauses == []


def test_paths_of_a_rooted_store_are_below_its_root() -> None:
    store = Objects()
    rooted = RootedStore(store, "bucket/t")
    assert rooted.create("a/f", b"1") == "1"
    assert list(store.objects) == ["bucket/t/a/f"]
    assert rooted.read("a/f") == Versioned(b"1", "1")
    assert rooted.replace("a/f", b"2", "1") == "2"
    assert rooted.read("g") is None
