"""Inline services: run before and after a write, in a fixed order.

::

    before   hoodie.prewrite.cleaner.policy: clean, or roll failed writes back
    after    clean ─► archive           a single writer still holds the table's lock, and they use its state
             clean ─► archive           asynchronous ones, without the lock of the write
             compaction ─► log compaction ─► clustering ─► partition TTL           likewise
             catalogs: Hive metastore
             callbacks, also if a service has failed

The write is visible before the services after it run, and stays if one of them fails. Asynchronous cleaning and
archiving (``hoodie.clean.async.enabled``, ``hoodie.archive.async``) run once the write has released the table's lock,
so that other writers go on. Apache Hudi begins them with the write and waits for them at its end. They plan without its
commit there, and so leave the files of one more commit. A service that another process runs is skipped.

Sources: ``BaseHoodieWriteClient.commitStats``, ``#mayBeCleanAndArchive``, ``#preWrite``,
``BaseHoodieTableServiceClient.runTableServicesInline`` (1.2.0).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence

from hudi_fast.catalogs.open_catalog import open_catalog
from hudi_fast.errors import HudiError, LockTimeoutError, ServiceTakenError
from hudi_fast.events import Completed, note, warn
from hudi_fast.locking.machine import is_held, service_lock_path
from hudi_fast.services.archiving.run import archive_after_write
from hudi_fast.services.cleaning.run import clean_after_write, clean_before_write
from hudi_fast.services.clustering.run import cluster_after_write
from hudi_fast.services.clustering.strategies import plan_strategy_of
from hudi_fast.services.compaction.log_run import (
    run_log_compaction,
    run_pending_log_compactions,
    schedule_log_compaction,
)
from hudi_fast.services.compaction.plan import schedule_compaction
from hudi_fast.services.compaction.run import run_compaction, run_pending_compactions
from hudi_fast.services.compaction.strategies import strategies_of
from hudi_fast.services.compaction.triggers import compaction_is_due, log_compaction_is_due
from hudi_fast.services.syncing.run import sync_after_write
from hudi_fast.services.ttl.run import delete_expired
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.failures import storage_failure
from hudi_fast.timeline.instant import instant_from_ms
from hudi_fast.writing.flow import WriteResult
from hudi_fast.writing.session import TableSession, without_waiting
from hudi_fast.writing.settings import Settings

__all__ = ["check_inline", "write_with_services"]

_Step = tuple[Callable[[TableSession], object], Callable[[Settings], bool]]
"""A function that runs a service if it is due, and whether the options of the write enable the service."""


def write_with_services(session: TableSession, write: Callable[[], WriteResult | None]) -> WriteResult | None:
    """Run the services before a write, the write, and the services after it; all writes use this function.

    Args:
        session: the call; its table need not exist.
        write: writes to the session's table; None when there was nothing to write.

    Returns:
        The result of ``write``.

    Raises:
        HudiError: the write failed; or a service after it failed and the options make that an error. Then a note says
            that the write is committed.
        StorageFailedError: storage failed before the write had begun, or in a service after it; the message says which.
    """
    settings = session.settings
    check_inline(settings)
    if settings.hooks.validators and session.backend.name == "local":
        import_extra("duckdb", "sql", "A SQL validator without Spark")
    with contextlib.ExitStack() as ends, session.phase("call", "writing"), _telling_failures(session):
        if settings.services.enabled and settings.clean.before_write != "NONE":
            with without_waiting(session):
                clean_before_write(session)
        with session.keeping_turn():
            result = write()
            if result is None or not result.instant:
                return result
            if settings.hooks.http_on or settings.hooks.callback is not None:
                ends.callback(_call_back, session, session.last_write, result)
            if settings.services.enabled:
                _run_due(session, result.instant, _WITHIN_TURN)
        if settings.services.enabled:
            _run_due(session, result.instant, _AFTER_TURN)
        with session.phase("sync", "services"):
            sync_after_write(session, result.instant)
    return result


@contextlib.contextmanager
def _telling_failures(session: TableSession) -> Iterator[None]:
    try:
        yield
    except HudiError:
        raise
    except OSError as error:
        done, uri = session.last_write, session.storage.uri
        if done is None:
            raise storage_failure(error, f"The write to {uri}", "The table is as before; run it again.") from error
        said = f"The write {done.instant} of {uri} is committed; a service after it"
        raise storage_failure(error, said, "Do not write its rows again.") from error


def _call_back(session: TableSession, done: Completed | None, result: WriteResult) -> None:
    assert done is not None, "a committed write has been completed"
    from hudi_fast.monitoring.callbacks import call_back

    call_back(session.settings.hooks, session.storage.uri, done, result)


def check_inline(settings: Settings) -> None:
    """Refuse services after the write that could not be planned, and catalogs that could not be called.

    Nothing is written before.

    Raises:
        ConfigError: an option of the strategy is wrong, or a catalog has no address.
        UnsupportedFeatureError: an unknown strategy, or a catalog that is not supported.

    Warns:
        HudiWarning: partitions are to expire, but no time is given; or an asynchronous service is switched off.
    """
    options = settings.compaction
    if options.inline or options.schedule_inline or settings.write.table_type == "MERGE_ON_READ":
        strategies_of(options)
    if settings.clustering.inline or settings.clustering.schedule_inline:
        plan_strategy_of(settings.clustering)
    if settings.services.enabled and settings.ttl.inline and settings.ttl.days <= 0:
        warn(
            "hoodie.partition.ttl.inline=true deletes nothing without hoodie.partition.ttl.strategy.days.retain: give "
            "the number of days to keep a partition."
        )
    _warn_of_idle("clean", settings.clean.asynchronous and not settings.clean.automatic, "hoodie.clean.async.enabled")
    _warn_of_idle("archive", settings.archive.asynchronous and not settings.archive.automatic, "hoodie.archive.async")
    for kind in settings.sync.catalogs:
        open_catalog(kind, settings.sync).close()
    if settings.metrics.on:
        from hudi_fast.monitoring.reporters import prepare_reporter

        prepare_reporter(settings.metrics)


def _warn_of_idle(service: str, idle: bool, key: str) -> None:
    if idle:
        warn(f"{key}=true has no effect, because hoodie.{service}.automatic=false: no {service} runs after a write.")


def _run_due(session: TableSession, instant: str, steps: Sequence[_Step]) -> None:
    """Run the services that the options enable and that are due."""
    for run, is_wanted in steps:
        if not is_wanted(session.settings):
            continue
        try:
            with without_waiting(session):
                run(session)
        except (LockTimeoutError, ServiceTakenError) as error:  # another process runs it
            note("services", logging.INFO, "A service was left to others: %s", error, table=session.storage.uri)
            session.changed()
        except (HudiError, OSError) as error:
            session.changed()
            said = f"The write {instant} of {session.storage.uri} is committed; a service after it failed."
            note("services", logging.ERROR, "%s %s", said, error, table=session.storage.uri, instant=instant)
            if session.settings.services.failures_raise:
                error.add_note(said)
                raise
            warn(f"{said} {error}")


# ---- the steps


def _compact(session: TableSession) -> None:
    """Execute pending compactions, then one more if it is due. Due is decided without the lock."""
    settings, options, state = session.settings, session.settings.compaction, session.state
    pending = bool(state.timeline.pending_compactions)
    if not state.config.is_mor or (pending and not options.inline):
        return
    if pending:
        run_pending_compactions(session)
    else:
        now = instant_from_ms(time.time_ns() // 1_000_000, state.config.timezone)
        if not compaction_is_due(state.config, state.timeline, now, options):
            return
    if options.inline and _is_running(session, "compaction"):
        return
    planned = schedule_compaction(session, if_due=True)
    if planned is not None and settings.compaction.inline:
        run_compaction(session, planned)


def _compact_logs(session: TableSession) -> None:
    state = session.state
    if not state.config.is_mor:
        return
    if state.timeline.pending_log_compactions:
        run_pending_log_compactions(session)
    threshold = session.settings.compaction.log_blocks_threshold
    if not log_compaction_is_due(session.storage, state.config, state.timeline, threshold):
        return
    planned = schedule_log_compaction(session, if_due=True)
    if planned is not None:
        run_log_compaction(session, planned)


def _cluster(session: TableSession) -> None:
    if session.settings.clustering.inline and _is_running(session, "clustering"):
        return
    cluster_after_write(session)


def _is_running(session: TableSession, service: str) -> bool:
    """Whether another process runs the service. A plan that is left pending would block writers."""
    return is_held(session.storage, service_lock_path(service))


def _cleans_later(settings: Settings) -> bool:
    return settings.clean.automatic and settings.clean.asynchronous


def _archives_later(settings: Settings) -> bool:
    """Archiving is asynchronous, or follows a clean that is."""
    return settings.archive.automatic and (settings.archive.asynchronous or _cleans_later(settings))


_WITHIN_TURN: tuple[_Step, ...] = (
    (clean_after_write, lambda settings: settings.clean.automatic and not _cleans_later(settings)),
    (archive_after_write, lambda settings: settings.archive.automatic and not _archives_later(settings)),
)
_AFTER_TURN: tuple[_Step, ...] = (
    (clean_after_write, _cleans_later),
    (archive_after_write, _archives_later),
    (_compact, lambda settings: settings.compaction.inline or settings.compaction.schedule_inline),
    (_compact_logs, lambda settings: settings.compaction.log_inline),
    (_cluster, lambda settings: settings.clustering.inline or settings.clustering.schedule_inline),
    (delete_expired, lambda settings: settings.ttl.inline),
)
