"""Deal tests to several processes: by measured seconds, the longest first, each JVM in as few processes as possible.

::

    durations.txt ─► seconds and needs of each module ─► Lots: the module that a free process gets next

A module is dealt as a whole, so that its fixtures are made once. A process that has started real Hudi or a Spark
session takes more modules that need it; modules without a need fill the rest of the time, those with a server in the
process that has started it, and a process takes over modules of another kind when nothing else is left, unless the
process that has them soon ends, too.

``pytest --write-durations FILE`` writes the file; ``make durations`` does so for all tests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["DURATIONS", "Lot", "Measured", "choose", "deal", "lots_of", "read_durations", "write_durations"]

DURATIONS = Path(__file__).with_name("durations.txt")
LISTED = 0.5
"""Seconds from which a test is in the file."""
OTHERS = 0.04
"""Seconds of a test that is not in the file."""
COSTLY = ("peer", "spark", "cluster")
"""Needs that take many seconds to start, the most costly first."""
WORTH_A_START = 60.0
"""Seconds of tests from which on a second process starts what they need: a JVM with real Hudi takes half of that."""
PLAIN = ""
SERVERS = frozenset({"dynamodb", "hdfs", "hive_metastore", "kafka", "schema_registry", "secured_hdfs", "zookeeper"})
"""Fixtures of servers that are JVMs."""


@dataclass(frozen=True, slots=True)
class Measured:
    """How long a test took, set-up included, and what it needs."""

    seconds: float
    needs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Lot:
    """Tests of one module.

    Attributes:
        name: path of the module.
        kind: the costliest thing that it needs; empty for none.
        seconds: that it takes.
        servers: those of :data:`SERVERS` that it needs.
    """

    name: str
    kind: str
    seconds: float
    servers: frozenset[str] = frozenset()


def read_durations(path: Path = DURATIONS) -> dict[str, Measured]:
    """Measured tests by their node ids; empty if there is no file."""
    if not path.exists():
        return {}
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        seconds, needs, test = line.split(" ", 2)
        found[test] = Measured(float(seconds), frozenset(needs.split(",")) - {"-"})
    return found


def write_durations(measured: Mapping[str, Measured], path: Path = DURATIONS) -> None:
    """Replace the entries of tests that were measured, and keep those of others whose modules there still are."""
    root = Path(__file__).parents[2]
    kept = {test: entry for test, entry in read_durations(path).items() if test not in measured}
    entries = {**kept, **{test: entry for test, entry in measured.items() if entry.seconds >= LISTED}}
    lines = [
        f"{entry.seconds:.1f} {','.join(sorted(entry.needs)) or '-'} {test}\n"
        for test, entry in sorted(entries.items())
        if (root / test.partition("::")[0]).exists() and "\n" not in test
    ]
    path.write_text("".join(lines), encoding="utf-8")


def module_of(test: str) -> str:
    """The lot of a test."""
    return test.partition("::")[0]


def lots_of(tests: Iterable[str], measured: Mapping[str, Measured]) -> list[Lot]:
    """The lots of some tests, the longest first."""
    seconds: defaultdict[str, float] = defaultdict(float)
    needs: dict[str, set[str]] = {}
    for test in tests:
        known = measured.get(test, Measured(OTHERS, frozenset()))
        seconds[module_of(test)] += known.seconds
        needs.setdefault(module_of(test), set()).update(known.needs)
    lots = [
        Lot(name, next((need for need in COSTLY if need in found), PLAIN), seconds[name], SERVERS & found)
        for name, found in needs.items()
    ]
    return sorted(lots, key=lambda lot: -lot.seconds)


def choose(lots: Sequence[Lot], had: Sequence[Lot], others_had: Sequence[Lot]) -> Lot | None:
    """The next lot of a process; None if it had better end, and leave the rest to others.

    Args:
        lots: those that are left, the longest first; at least one.
        had: those that this process had.
        others_had: those that other processes had.
    """
    mine, others = ({lot.kind for lot in some} for some in (had, others_had))
    by_kind: dict[str, list[Lot]] = {}
    for lot in lots:
        by_kind.setdefault(lot.kind, []).append(lot)
    for kind in COSTLY:  # those that have started here
        if kind in mine and kind in by_kind:
            return by_kind[kind][0]
    for kind in COSTLY:  # those that have started nowhere
        if kind not in others and kind in by_kind:
            return by_kind[kind][0]
    if PLAIN in by_kind:
        return _without_a_start(by_kind[PLAIN], had, others_had)
    return lots[0] if not mine or sum(lot.seconds for lot in lots) >= WORTH_A_START else None


def _without_a_start(lots: Sequence[Lot], had: Sequence[Lot], others_had: Sequence[Lot]) -> Lot:
    """The longest lot whose server runs in this process, else one whose server runs in no other."""
    mine, others = (frozenset[str]().union(*(lot.servers for lot in some)) for some in (had, others_had))
    alike = (lot for lot in lots if lot.servers & mine)
    free = (lot for lot in lots if not lot.servers & others)
    return next(alike, None) or next(free, None) or lots[0]


def deal(config: Any, log: Any) -> Any:
    """The scheduler of pytest-xdist that deals lots."""
    from xdist.scheduler import LoadScopeScheduling

    class Lots(LoadScopeScheduling):
        """Asks :func:`choose` for each lot."""

        def __init__(self) -> None:
            super().__init__(config, log)
            self._lots: list[Lot] | None = None
            self._had: dict[Any, list[Lot]] = {}

        def _split_scope(self, nodeid: str) -> str:
            return module_of(nodeid)

        def _assign_work_unit(self, node: Any) -> None:
            if self._lots is None:
                self._lots = lots_of(self.collection or (), read_durations())
            left = [lot for lot in self._lots if lot.name in self.workqueue]
            others = [one for other, had in self._had.items() if other is not node for one in had]
            lot = choose(left, self._had.setdefault(node, []), others)
            if lot is None:
                node.shutdown()
                return
            self._had[node].append(lot)
            self.workqueue.move_to_end(lot.name, last=False)
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False
    return Lots()
