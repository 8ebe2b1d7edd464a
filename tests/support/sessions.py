"""Sessions, engines and services with injected parts; a Spark session with other settings for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.instants import Instant
from hudi_fast.writing.backend import Backend, Engine
from hudi_fast.writing.flow import WriteResult, run_write
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.rollback import RolledBack, roll_back
from hudi_fast.writing.session import Call, TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.threads import ThreadBackend


def session_of(
    place: Storage | Path | str, options: Mapping[str, Any] | None = None, backend: Backend | None = None
) -> TableSession:
    """The session of a call on a table, in threads unless another backend is given."""
    storage = place if isinstance(place, Storage) else Storage(place)
    return TableSession(Call(storage, Settings.from_options(options), backend or ThreadBackend(1)))


@contextmanager
def hadoop_settings(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """Hadoop settings of a session for a while.

    All tests of a process share its session. ``unset`` also takes defaults of Hadoop's own files away, hence the
    reload.
    """
    hadoop = spark._jsc.hadoopConfiguration()
    before = {name: hadoop.get(name) for name in settings}
    try:
        for name, value in settings.items():
            hadoop.set(name, value)
        yield
    finally:
        for name in before:
            hadoop.unset(name)
        hadoop.reloadConfiguration()
        for name, value in before.items():
            if hadoop.get(name) != value:
                hadoop.set(name, value)


def write_engine(
    engine: Engine, place: Storage | Path | str, options: Mapping[str, Any], mode: str = "append"
) -> WriteResult:
    """Write the rows of an engine, without the services around it."""
    return run_write(session_of(place, options), engine, mode)


class InjectedServices(TableServices):
    """The services of a table; calls with ``spark`` (anything) run on a given backend."""

    def __init__(self, storage: Storage, backend: Backend) -> None:
        super().__init__(storage)
        self._backend = backend

    def _session(self, options: Mapping[str, Any] | None = None, spark: Any = None) -> TableSession:
        session = super()._session(options)
        if spark is not None:
            session.backend = self._backend
            if isinstance(self._backend, MeanwhileBackend):
                self._backend.session = session
        return session


class MeanwhileBackend(ThreadBackend):
    """Threads that do something else after each piece of work for which the table's lock is not held.

    Args:
        then: what to do.
    """

    def __init__(self, then: Callable[[], object]) -> None:
        super().__init__(1)
        self._then = then
        self.session: TableSession | None = None

    def map_units(self, *args: Any) -> list[WriteStat]:
        return self._after(super().map_units(*args))

    def write_records(self, *args: Any) -> list[WriteStat]:
        return self._after(super().write_records(*args))

    def delete(self, *args: Any) -> list[bool]:
        return self._after(super().delete(*args))

    def _after(self, answer: Any) -> Any:
        if self.session is None or not self.session.holds_lock:
            self._then()
        return answer


class CompactingBackend(ThreadBackend):
    """Threads that let others go on once they have written base files of the metadata table.

    Args:
        then: what others do.

    Attributes:
        held: for each compaction whether the table's lock was held.
    """

    def __init__(self, then: Callable[[], object]) -> None:
        super().__init__(1)
        self._then = then
        self.held: list[bool] = []
        self._session: TableSession | None = None

    def write(self, path: Path, rows: pa.Table, options: Mapping[str, Any]) -> WriteResult:
        """Write rows, without the services around it."""
        self._session = session_of(path, options, self)
        return run_write(self._session, LocalEngine(rows), "append")

    def map_groups(self, *args: Any) -> list[WriteStat]:
        stats = super().map_groups(*args)
        assert self._session is not None
        self.held.append(self._session.holds_lock)
        self._then()
        return stats


class PartlyBackend(ThreadBackend):
    """Threads with some kinds of work replaced.

    Args:
        map_units: instead of that of threads; None for that.
        write_records: likewise.
        delete: likewise.
    """

    def __init__(
        self,
        map_units: Callable[..., list[WriteStat]] | None = None,
        write_records: Callable[..., list[WriteStat]] | None = None,
        delete: Callable[..., list[bool]] | None = None,
    ) -> None:
        super().__init__(1)
        given = {"map_units": map_units, "write_records": write_records, "delete": delete}
        for name, function in given.items():
            if function is not None:
                setattr(self, name, function)


def rolled_back(place: Storage | Path | str, failed: Instant, backend: Backend | None = None) -> RolledBack:
    """Roll an instant back under the table's lock."""
    session = session_of(place, None, backend)
    with session.locked():
        return roll_back(session, failed)
