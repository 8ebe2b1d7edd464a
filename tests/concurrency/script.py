"""A writer of a world: carries its operations out, one after the other, and keeps a record of all that it knows.

::

    World, number of the writer ─► operations on a WitnessStorage ─► events, as they happen:
        ["begin", op, ns]                                 before an operation
        ["made" | "deleted", op, file, begun, ended, sure]  a file of the timeline; unsure before the call returns
        ["end", op, ns, outcome, instant, error, rows]    after it

``outcome`` is ``landed``, ``empty`` (nothing to commit), ``read``, ``served``, ``refused`` (an error that says that
the table is as before), ``unknown`` (an error that says that nobody knows) or ``crashed`` (an error that no caller
expects).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import hudi_fast as hf
from hudi_fast.errors import CommitStateUnknownError, HudiError, PostCommitError
from hudi_fast.timeline.instants import WRITE_ACTIONS
from tests.concurrency.faults import WitnessStorage, clock_off, hasty, leased, unmade
from tests.concurrency.site import Site
from tests.concurrency.worlds import Op, World
from tests.support.instrumented_storage import InjectedFaultError

__all__ = ["Event", "Teller", "rows_seen", "run_first", "run_script"]

Event = list[Any]


def run_first(world: World, site: Site, record: Callable[[Event], None]) -> None:
    """Make the table with the rows that it has at the beginning; their operations count from 0 as well."""
    for number, op in enumerate(world.openings):
        event_of = Teller(record)
        storage = WitnessStorage(site.address, site.options, event_of.timeline)
        event_of.begin(number)
        if not number:
            hf.HudiTable.create(site.address, world.rows(op).schema, world.options_alone, site.options)
        result = hf.HudiTable(storage).upsert(world.rows(op), world.options_alone)
        event_of.end("landed", result.instant)


def run_script(
    world: World,
    writer: int,
    site: Site,
    record: Callable[[Event], None],
    can_kill: bool = True,
    mutations: tuple[str, ...] = (),
) -> None:
    """Do what the world has for a writer.

    Args:
        world: the world.
        writer: number of the writer.
        site: where the table is, folders of machines and the file of leases.
        record: takes events.
        can_kill: whether this process is the writer's own.
        mutations: parts of the product to do without.
    """
    teller = Teller(record)
    faults = [one for one in world.faults if one.writer == writer]
    machine = site.folder / f"machine{writer}" if world.machines else None
    if machine is not None:
        machine.mkdir(exist_ok=True)
    storage = WitnessStorage(site.address, site.options, teller.timeline, faults, machine, can_kill)
    with ExitStack() as stack:
        if can_kill:  # what follows is true of the whole process
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            stack.enter_context(unmade(mutations))
            stack.callback(clock_off, 0)
            if world.faults:
                stack.enter_context(hasty())
            if world.provider == "lease":
                stack.enter_context(leased(site.folder / "lease"))
        for number, op in enumerate(world.scripts[writer]):
            for fault in faults:
                if fault.kind in ("skew", "step_back") and fault.at == number:
                    clock_off(fault.ms)
            _carry_out(world, op, number, hf.HudiTable(storage), teller)


class Teller:
    """Makes events, of one operation after the other."""

    def __init__(self, record: Callable[[Event], None]) -> None:
        self._record, self._op = record, 0

    def begin(self, op: int) -> None:
        """An operation begins; what follows belongs to it."""
        self._op = op
        self._record(["begin", op, time.monotonic_ns()])

    def timeline(self, what: str, file: str, begun: int, ended: int, sure: bool) -> None:
        """What a ``WitnessStorage`` notes."""
        self._record([what, self._op, file, begun, ended, sure])

    def end(self, outcome: str, instant: str = "", error: str = "", rows: Any = None) -> None:
        """The operation has ended."""
        self._record(["end", self._op, time.monotonic_ns(), outcome, instant, error, rows])


def _carry_out(world: World, op: Op, number: int, table: hf.HudiTable, teller: Teller) -> None:
    teller.begin(number)
    try:
        outcome, instant, rows = _do(world, op, table)
    except CommitStateUnknownError as error:
        teller.end("unknown", error=_text(error))
    except PostCommitError as error:
        teller.end("landed" if error.result is not None else "served", error.instant, _text(error))
    except HudiError as error:
        teller.end("refused", error=_text(error))
    except InjectedFaultError as error:
        teller.end("refused", error=_text(error))
    except Exception as error:
        teller.end("crashed", error=_text(error))
    else:
        teller.end(outcome, instant, rows=rows)


def _text(error: BaseException) -> str:
    notes = " ".join(getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {error} {notes}"[:1500]


def _do(world: World, op: Op, table: hf.HudiTable) -> tuple[str, str, Any]:
    options = dict(world.options)
    if op.verb == "read":
        return "read", "", rows_seen(table.to_arrow(columns=["id", "v"]))
    if op.verb == "undo":
        _undo(table, options)
        return "served", "", None
    if op.verb in _SERVICES:
        _SERVICES[op.verb](table.services, options)
        return "served", "", None
    result = _write(world, op, table, options)
    return "landed" if result.instant else "empty", result.instant, None


def _write(world: World, op: Op, table: hf.HudiTable, options: dict[str, str]) -> Any:
    if op.verb == "increment":
        return table.update(pc.field("id").isin(list(op.keys)), {"v": pc.field("v") + 1}, options)
    if op.verb == "delete_partition":
        return table.delete_partitions([op.partition], options)
    rows = world.rows(op)
    if op.verb == "delete":
        return table.delete(rows.select(["id", "p"]), options)
    return table.write(rows, op.verb, options)


def _drop_savepoint(services: Any, options: dict[str, str]) -> None:
    for instant in services.savepoints()["instant"].to_pylist()[:1]:
        services.delete_savepoint(instant, options)


def _restore(services: Any, options: dict[str, str]) -> None:
    """Restore a table to its newest savepoint, if it has any."""
    for instant in services.savepoints()["instant"].to_pylist()[-1:]:
        services.restore(instant, options)


def _undo(table: hf.HudiTable, options: dict[str, str]) -> None:
    """Roll back the newest write, whoever made it."""
    known = table.history().filter((pc.field("state") == "COMPLETED") & pc.field("action").isin(list(WRITE_ACTIONS)))
    table.services.rollback(max(known["instant"].to_pylist(), default=None), options)


_SERVICES: dict[str, Callable[[Any, dict[str, str]], object]] = {
    "compact": lambda services, options: services.compact(options),
    "cluster": lambda services, options: services.cluster(options),
    "schedule_compact": lambda services, options: services.schedule_compact(options),
    "schedule_cluster": lambda services, options: services.schedule_cluster(options),
    "clean": lambda services, options: services.clean(options),
    "archive": lambda services, options: services.archive(options),
    "index": lambda services, options: services.index("column_stats", options=options),
    "drop_index": lambda services, options: services.drop_index("column_stats", options),
    "pending": lambda services, options: services.run_pending(options),
    "savepoint": lambda services, options: services.savepoint(options=options),
    "drop_savepoint": _drop_savepoint,
    "restore": _restore,
}


def rows_seen(found: pa.Table) -> list[list[Any]]:
    """Key and value of each row, sorted."""
    return sorted([key, value] for key, value in zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))
