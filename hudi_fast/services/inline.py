"""Inline services: run before and after a write, in a fixed order.

::

    before   hoodie.prewrite.cleaner.policy: clean, or roll failed writes back
             abandoned plans that could block the write: executed, or withdrawn if that fails
    after    abandoned indexings ─► clean ─► archive
                                        a single writer still holds the table's lock, and they use its state
             clean ─► archive           asynchronous ones, without the lock of the write
             compaction ─► log compaction ─► clustering ─► partition TTL           likewise
             catalogs: Hive metastore
             callbacks, also if a service has failed

The write is visible before the services after it run, and stays if one of them fails: ``PostCommitError`` says so, has
the result of the write, and names the services that have not run. Asynchronous cleaning and archiving
(``hoodie.clean.async.enabled``, ``hoodie.archive.async``) run once the write has released the table's lock, so that
other writers can continue. Apache Hudi begins them together with the write and waits for them at its end. There they
plan without the commit of the write, so they keep the files of one more commit. A service that another process runs is
skipped.

Sources: ``BaseHoodieWriteClient.commitStats``, ``#mayBeCleanAndArchive``, ``#preWrite``,
``BaseHoodieTableServiceClient.runTableServicesInline`` (1.2.0).

Sync catalogs with a table.

A write is committed before catalogs are synced, and stays if that fails. Each enabled catalog is tried.

Source: ``HoodieSparkSqlWriter#metaSync``, ``SyncUtilHelpers`` (Apache Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from hudi_fast.catalogs.sync import SyncedTable, open_catalog, sync_table
from hudi_fast.config.properties_file import PROPERTIES_PATH
from hudi_fast.errors import HudiError, LockTimeoutError, PostCommitError, ServiceTakenError
from hudi_fast.events import note, warn
from hudi_fast.locking.machine import is_held, service_lock_path
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.services.archive import archive_after_write
from hudi_fast.services.clean import clean_after_write, clean_before_write
from hudi_fast.services.clustering.cluster import cluster_after_write, finish_or_withdraw
from hudi_fast.services.clustering.strategies import plan_strategy_of
from hudi_fast.services.compact import (
    run_compaction,
    run_log_compaction,
    run_pending_compactions,
    run_pending_log_compactions,
    schedule_log_compaction,
)
from hudi_fast.services.compact_plan import compaction_is_due, log_compaction_is_due, schedule_compaction, strategies_of
from hudi_fast.services.expiry import delete_expired
from hudi_fast.services.index_build import finish_abandoned_indexings
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.failures import storage_failure
from hudi_fast.timeline.instants import instant_from_ms
from hudi_fast.view.table_state import commits_newest_first
from hudi_fast.writing.flow import WriteResult
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings

__all__ = ["check_inline", "sync_after_write", "sync_catalogs", "write_with_services"]


def sync_catalogs(session: TableSession, kinds: Sequence[str]) -> list[SyncedTable]:
    """Sync catalogs with the session's table; returns the result for each catalog table.

    Args:
        session: the table, and the options of its entries.
        kinds: ``hive``, ``glue``.

    Raises:
        HudiError: see :func:`hudi_fast.catalogs.sync.sync_table`.
    """
    synced = []
    for kind in kinds:
        with contextlib.closing(open_catalog(kind, session.settings.sync)) as catalog:
            synced += sync_table(catalog, session.state, session.settings.sync)
    return synced


def sync_after_write(session: TableSession) -> None:
    """Sync the catalogs that the options of a write enable.

    Args:
        session: of the write.

    Raises:
        HudiError: catalogs were not synced; the first reason.
    """
    failed: list[HudiError] = []
    for kind in session.settings.sync.catalogs:
        try:
            sync_catalogs(session, [kind])
        except HudiError as error:
            failed.append(error)
    if failed:
        raise failed[0]


_OF_MERGE_ON_READ = ("compact", "compact_logs")


class _Step(NamedTuple):
    """A service after a write.

    Attributes:
        name: of the method of ``HudiTable.services``.
        run: runs the service if it is due.
        is_wanted: whether the options of the write enable it.
        raises: whether the options make its failure an error; else it is a warning.
    """

    name: str
    run: Callable[[TableSession], object]
    is_wanted: Callable[[Settings], bool]
    raises: Callable[[Settings], bool] = lambda settings: settings.services.failures_raise


def write_with_services(session: TableSession, write: Callable[[], WriteResult | None]) -> WriteResult | None:
    """Run the services before a write, the write, and the services after it; all writes use this function.

    Args:
        session: the call; its table need not exist.
        write: writes to the session's table; None when there was nothing to write.

    Returns:
        The result of ``write``.

    Raises:
        HudiError: the write failed.
        StorageFailedError: storage failed before the write had begun.
        PostCommitError: the write is committed, a service after it failed, and the options make that an error.
    """
    settings, written = session.settings, list[WriteResult]()
    check_inline(settings)
    if settings.hooks.validators and session.backend.name == "local":
        import_extra("duckdb", "sql", "A SQL validator without Spark")
    with (
        contextlib.ExitStack() as ends,
        session.phase("call", "writing"),
        _telling_failures(session.storage.uri, written),
    ):
        if settings.services.enabled and settings.clean.before_write != "NONE":
            with session.without_waiting():
                clean_before_write(session)
        if settings.services.enabled:
            _finish_abandoned(session)
        with session.keeping_turn():
            result = write()
            if result is None or not result.instant:
                return result
            written.append(result)
            if settings.hooks.http_on or settings.hooks.callback is not None:
                ends.callback(_call_back, session, _message_of(session, result), result)
            _run_due(session, result, _WITHIN_TURN)
        _run_due(session, result, _AFTER_TURN)
        _run_due(session, result, _CATALOGS)
    return result


@contextlib.contextmanager
def _telling_failures(uri: str, written: list[WriteResult]) -> Iterator[None]:
    """Turn storage failures outside of services into errors that say whether the write is committed."""
    try:
        yield
    except HudiError:
        raise
    except OSError as error:
        if not written:
            raise storage_failure(error, f"The write to {uri}", "The table is as before; run it again.") from error
        raise PostCommitError(
            f"The write {written[0].instant} of {uri} is committed; storage failed after it: {error}. Do not run the "
            "write again.",
            written[0].instant,
            written[0],
        ) from error


def _finish_abandoned(session: TableSession) -> None:
    """Execute pending plans that block writes, if this writer executes such services.

    A pending clustering blocks changes of its rows; a pending compaction blocks only the deletion of partitions. An
    abandoned plan would otherwise fail every later write before its services run.
    """
    settings, storage = session.settings, session.storage
    deletes = settings.write.operation == "delete_partition"
    runs: list[tuple[bool, Callable[[TableSession], object]]] = [
        (settings.executes_clusterings, finish_or_withdraw),
        (deletes and settings.compaction.inline, _run_compactions),
        (deletes and settings.compaction.log_inline, _run_log_compactions),
    ]
    for run in [run for wanted, run in runs if wanted]:
        try:
            if storage.exists(PROPERTIES_PATH):
                with session.without_waiting():
                    run(session)
        except (LockTimeoutError, ServiceTakenError) as error:
            note("services", logging.INFO, "A service was left to others: %s", error, table=storage.uri)
        except Exception as error:
            warn(f"A pending service of {storage.uri} failed before a write: {error or type(error).__name__}")
        finally:
            session.changed()


def _run_compactions(session: TableSession) -> None:
    if session.reload().timeline.pending_compactions:
        run_pending_compactions(session)


def _run_log_compactions(session: TableSession) -> None:
    if session.reload().timeline.pending_log_compactions:
        run_pending_log_compactions(session)


def _message_of(session: TableSession, result: WriteResult) -> bytes | None:
    """The message of a write for the callback over HTTP; None without one."""
    if not session.settings.hooks.http_on:
        return None
    from hudi_fast.monitoring.callbacks import message_of

    state, config = session.state, session.state.config
    commit = next(found for instant, found in commits_newest_first(state) if instant.requested == result.instant)
    has_ranges = PartitionKind.COLUMN_STATS in config.all_metadata_partitions
    return message_of(result.instant, commit, config.name, session.storage.uri, has_ranges)


def _call_back(session: TableSession, message: bytes | None, result: WriteResult) -> None:
    from hudi_fast.monitoring.callbacks import call_back

    call_back(session.settings.hooks, session.storage.uri, message, result)


def check_inline(settings: Settings) -> None:
    """Refuse services after the write that could not be planned, and catalogs that could not be called.

    Raises before anything is written.

    Raises:
        ConfigError: an option of the strategy is wrong, or a catalog has no address.
        UnsupportedFeatureError: an unknown strategy, or a catalog that is not supported.

    Warns:
        HudiWarning: partitions are to expire, but no time is given; or an asynchronous service is switched off.
    """
    options = settings.compaction
    if options.inline or options.schedule_inline or settings.write.table.type == "MERGE_ON_READ":
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
        from hudi_fast.monitoring.metrics import prepare_reporter

        prepare_reporter(settings.metrics)


def _warn_of_idle(service: str, idle: bool, key: str) -> None:
    if idle:
        warn(f"{key}=true has no effect, because hoodie.{service}.automatic=false: no {service} runs after a write.")


def _run_due(session: TableSession, result: WriteResult, steps: Sequence[_Step]) -> None:
    """Run the services that the options enable and that are due."""
    uri, instant, wanted = session.storage.uri, result.instant, _wanted(session.settings)
    for step in steps:
        if step not in wanted:
            continue
        try:
            with session.without_waiting():
                step.run(session)
        except (LockTimeoutError, ServiceTakenError) as error:  # another process runs it
            note("services", logging.INFO, "A service was left to others: %s", error, table=uri)
            session.changed()
        except Exception as error:  # including errors of Arrow, of Spark and of the caller's functions
            session.changed()
            said = f"The write {instant} of {uri} is committed; a service after it failed."
            reason = f"{step.name}: {error or type(error).__name__}"
            note("services", logging.ERROR, "%s %s", said, reason, table=uri, instant=instant)
            if not step.raises(session.settings):
                warn(f"{said} {reason}")
                continue
            left = _left(session, wanted[wanted.index(step) :])
            raise PostCommitError(
                f"{said} {reason} Do not run the write again. Left to run: {', '.join(left)}; the next write runs what "
                "is due.",
                instant,
                result,
                left,
            ) from error


def _left(session: TableSession, steps: Sequence[_Step]) -> tuple[str, ...]:
    """The names of services, without services that the table type does not have."""
    state = session.known_state
    others = () if state is None or state.config.is_mor else _OF_MERGE_ON_READ
    return tuple(dict.fromkeys(one.name for one in steps if one.name not in others))


def _wanted(settings: Settings) -> list[_Step]:
    """The services after a write that the options enable, in their order."""
    services = (*_WITHIN_TURN, *_AFTER_TURN) if settings.services.enabled else ()
    return [one for one in (*services, *_CATALOGS) if one.is_wanted(settings)]


# ---- the steps


def _compact(session: TableSession) -> None:
    """Execute pending compactions, then one more if it is due. Checks without the lock whether it is due."""
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


def _sync(session: TableSession) -> None:
    with session.phase("sync", "services"):
        sync_after_write(session)


def _cleans_later(settings: Settings) -> bool:
    return settings.clean.automatic and settings.clean.asynchronous


def _archives_later(settings: Settings) -> bool:
    """Whether archiving is asynchronous, or follows an asynchronous clean."""
    return settings.archive.automatic and (settings.archive.asynchronous or _cleans_later(settings))


_WITHIN_TURN: tuple[_Step, ...] = (
    _Step("index", finish_abandoned_indexings, lambda settings: True),
    _Step("clean", clean_after_write, lambda settings: settings.clean.automatic and not _cleans_later(settings)),
    _Step(
        "archive", archive_after_write, lambda settings: settings.archive.automatic and not _archives_later(settings)
    ),
)
_AFTER_TURN: tuple[_Step, ...] = (
    _Step("clean", clean_after_write, _cleans_later),
    _Step("archive", archive_after_write, _archives_later),
    _Step("compact", _compact, lambda settings: settings.compaction.inline or settings.compaction.schedule_inline),
    _Step("compact_logs", _compact_logs, lambda settings: settings.compaction.log_inline),
    _Step("cluster", _cluster, lambda settings: settings.clustering.inline or settings.clustering.schedule_inline),
    _Step("expire_partitions", delete_expired, lambda settings: settings.ttl.inline),
)
_CATALOGS: tuple[_Step, ...] = (
    _Step(
        "sync",
        _sync,
        lambda settings: bool(settings.sync.catalogs),
        lambda settings: not settings.sync.ignores_failures,
    ),
)
