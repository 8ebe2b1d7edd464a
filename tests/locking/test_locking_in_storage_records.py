"""Lock records on a store that loses, delays and refuses: what ``put_record`` says is so, and nobody is overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.locking.lock_record import STORAGE_LOCK_PATH, LockRecord, decode_record, encode_record, put_record
from hudi_fast.storage.conditional import ThrottledError, Versioned

OUTCOMES = ("fine", "unheard", "never", "late", "throttled")
"""Of a write: it is answered; written, but the answer is lost; lost itself; written later; refused."""


@dataclass
class Wayward:
    """One object in memory; what becomes of each request is told beforehand, and fine after that."""

    script: Iterator[str]
    now: Versioned | None = None
    history: list[bytes] = field(default_factory=list)
    late: list[tuple[str | None, bytes]] = field(default_factory=list)

    def read(self, path: str) -> Versioned | None:
        assert path == STORAGE_LOCK_PATH
        if next(self.script, "fine") == "never":
            raise OSError("not read")
        return self.now

    def create(self, path: str, data: bytes) -> str | None:
        return self._write(None, data)

    def replace(self, path: str, data: bytes, version: str) -> str | None:
        return self._write(version, data)

    def land(self) -> None:
        """What is late arrives."""
        while self.late:
            self._apply(*self.late.pop(0))

    def _write(self, version: str | None, data: bytes) -> str | None:
        outcome = next(self.script, "fine")
        if outcome == "throttled":
            raise ThrottledError
        if outcome == "late":
            self.late.append((version, data))
        written = self._apply(version, data) if outcome in ("fine", "unheard") else None
        if outcome != "fine":
            raise OSError("no answer")
        return written

    def _apply(self, version: str | None, data: bytes) -> str | None:
        if (None if self.now is None else self.now.version) != version:
            return None
        self.history.append(data)
        self.now = Versioned(data, f"v{len(self.history)}")
        return self.now.version


def owner_of(data: bytes) -> str:
    return decode_record(data).owner


@dataclass
class Writer:
    """What a provider does, without clocks: any lock may be past its time when others look at it."""

    name: str
    store: Wayward
    version: str | None = None
    began: int = -1

    def step(self, action: str, time: int) -> None:
        if action == "acquire" and self.version is None:
            found = self.store.read(STORAGE_LOCK_PATH)
            self.version = self._put(False, time, None if found is None else found.version)
            self.began = len(self.store.history)
        elif action == "renew" and self.version is not None:
            self.version = self._put(False, time, self.version)
            if self.version is not None:
                since = self.store.history[self.began - 1 :]
                assert {owner_of(data) for data in since} == {self.name}, "somebody else had the lock in between"
        elif action == "release" and self.version is not None:
            version, self.version = self.version, None
            self._put(True, time, version)

    def _put(self, expired: bool, time: int, version: str | None) -> str | None:
        record = LockRecord(expired, time, self.name)
        written = put_record(self.store, record, version)
        now = self.store.now
        if written is None:
            assert now is None or owner_of(now.data) != self.name
        else:
            assert now == Versioned(encode_record(record), written)
        return written


steps = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["acquire", "renew", "renew", "release"]),
        st.lists(st.sampled_from(OUTCOMES), max_size=3),
        st.booleans(),
    ),
    max_size=30,
)


@given(steps)
def test_whoever_renews_has_had_the_lock_ever_since(plan: list[tuple[str, str, list[str], bool]]) -> None:
    store = Wayward(iter(()))
    writers = {name: Writer(name, store) for name in "ab"}
    for time, (name, action, outcomes, lands) in enumerate(plan):
        store.script = iter(outcomes)
        try:
            writers[name].step(action, time)
        except OSError:
            pass  # it will try again
        store.script = iter(())
        if lands:
            store.land()


@given(st.lists(st.sampled_from(OUTCOMES), max_size=8), st.booleans())
def test_a_write_that_is_tried_until_it_is_settled_is_there_once(outcomes: list[str], exists: bool) -> None:
    store = Wayward(iter(()))
    version = put_record(store, LockRecord(True, 1, "other"), None) if exists else None
    store.script = iter(outcomes)
    record = LockRecord(False, 2, "own")
    for _ in range(len(outcomes) + 1):
        try:
            written = put_record(store, record, version)
            break
        except OSError:
            store.land()
    assert store.now == Versioned(encode_record(record), str(written))
    assert store.history.count(encode_record(record)) == 1
