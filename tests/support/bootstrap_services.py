"""A bootstrapped table, every table service as a function of it, and what must be true after each of them.

Data flow: a test makes a table (:func:`boot`) of a kind of :data:`KINDS`, runs a service of :data:`SERVICES`, and
checks rows, indexes, and the folder that the table was made of (:meth:`Boot.check`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state
from tests.support.bootstrap_tables import BY_REGEX, FULL, bootstrap_options, changed, data, make_source
from tests.support.old_tables import DAYS

__all__ = ["BOOTSTRAPS", "CASES", "Boot", "boot"]

TYPE = "hoodie.datasource.write.table.type"
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}
ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
BOOTSTRAPS = ("00000000000001", "00000000000002")


@dataclass
class Boot:
    """A bootstrapped table, what it holds by key, and the files of its folder."""

    folder: Path
    table: hf.HudiTable
    notes: dict[str, str]
    source: dict[Path, bytes] = field(default_factory=dict)

    @property
    def services(self) -> Any:
        """Those of the table."""
        return self.table.services

    def rows(self) -> pa.Table:
        return data(self.table.to_arrow())

    def upsert(self, keys: list[str], ts: int, note: str) -> str:
        """Change some rows."""
        some = self.rows()
        some = some.filter(pa.compute.is_in(some["id"], pa.array(keys)))
        done = self.table.upsert(changed(some, ts, note), QUIET).instant
        self.notes |= dict.fromkeys(keys, note)
        return done

    def skeletons(self) -> int:
        """File groups whose data is in the folder."""
        view = load_state(Storage(self.table.path)).view
        slices = [one for partition in view.lister.partitions() for one in latest_slices(view, partition)]
        return sum(one.base_file is not None and one.base_file.is_skeleton for one in slices)

    def check(self) -> None:
        """The rows are those that are expected, the metadata table agrees, and the folder has not been touched."""
        rows = self.table.to_arrow(["id", "note"])
        assert dict(zip(rows["id"].to_pylist(), rows["note"].to_pylist(), strict=True)) == self.notes
        assert self.services.validate().differences.to_pylist() == []
        assert self.services.plan_repair().findings == ()
        assert {path: path.read_bytes() for path in (self.folder / "source").rglob("*.parquet")} == self.source


def boot(folder: Path, kind: str) -> Boot:
    """A table of one kind, of files in three partitions."""
    rows = data(make_source(folder / "source"))
    hf.bootstrap(folder / "source", folder / "t", bootstrap_options(**KINDS[kind]))
    source = {path: path.read_bytes() for path in (folder / "source").rglob("*.parquet")}
    notes = dict(zip(rows["id"].to_pylist(), rows["note"].to_pylist(), strict=True))
    return Boot(folder, hf.HudiTable.open(folder / "t"), notes, source)


def clean(made: Boot) -> None:
    for ts in (10, 20, 30):
        made.upsert(["k0003", "k0055", "k0101"], ts, f"n{ts}")
        made.services.compact(QUIET) if made.table.config.is_mor else None
    assert made.services.clean(ONE_VERSION).files_deleted


def archive(made: Boot) -> None:
    """The bootstrap itself is archived; its skeletons stay and are no orphans."""
    for ts in range(10, 22):
        made.upsert(["k0003"], ts, f"n{ts}")
        made.services.compact(QUIET) if made.table.config.is_mor else None
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    made.services.clean(keep)
    assert made.services.archive(keep).instants
    state = load_state(Storage(made.table.path))
    archived = [one.requested for one in ArchivedTimeline(state.storage, state.config).instants()]
    assert set(archived) & set(BOOTSTRAPS)
    made.check()
    made.upsert(["k0004", "k0110"], 40, "after")


def compact(made: Boot) -> None:
    made.upsert(["k0003", "k0055"], 10, "n10")
    made.check()
    planned = made.services.schedule_compact()
    if not made.table.config.is_mor:
        assert planned is None
        return
    assert made.services.compact(plan=planned).instant


def compact_logs(made: Boot) -> None:
    for ts in (10, 20, 30):
        made.upsert(["k0003", "k0055"], ts, f"n{ts}")
    threshold = {"hoodie.log.compaction.blocks.threshold": "2"}
    done = made.services.compact_logs(threshold)
    assert bool(done.instant) == made.table.config.is_mor
    made.check()
    made.upsert(["k0003"], 40, "n40")
    if made.table.config.is_mor:
        made.check()
        assert made.services.compact(QUIET).instant


def cluster(made: Boot) -> None:
    made.upsert(["k0003", "k0055"], 10, "n10")
    by = {"hoodie.clustering.plan.strategy.sort.columns": "note", "hoodie.layout.optimize.strategy": "ZORDER"}
    assert made.services.cluster(by).rows == len(made.notes)
    assert made.skeletons() == 0
    made.check()
    made.services.clean(ONE_VERSION)


def rollback(made: Boot) -> None:
    before = dict(made.notes)
    last = made.upsert(["k0003", "k0101"], 10, "n10")
    made.check()
    assert made.services.rollback(last).rolled_back == (last,)
    made.notes = before


def restore(made: Boot) -> None:
    first = made.table.history()["instant"].to_pylist()[-1]
    assert first in BOOTSTRAPS
    before, skeletons = dict(made.notes), made.skeletons()
    assert made.services.savepoint(first).instant == first
    made.upsert(["k0003", "k0101"], 10, "n10")
    made.services.compact(QUIET) if made.table.config.is_mor else None
    made.services.clean(ONE_VERSION)
    made.services.cluster(QUIET)
    assert made.services.restore(first).rolled_back
    made.notes = before
    assert made.skeletons() == skeletons
    made.check()
    made.services.delete_savepoint(first)
    made.upsert(["k0003"], 20, "n20")


def index(made: Boot) -> None:
    made.upsert(["k0003", "k0101"], 10, "n10")
    for kind in ("column_stats", "bloom_filters", "record_index"):
        made.services.index(kind)  # a write has built some of them already
        assert kind in load_state(Storage(made.table.path)).config.metadata_partitions
        made.check()
    if made.table.version > 6:
        made.services.index("secondary_index", ["note"], name="by_note")
        made.services.index("expr_index", ["note"], name="lower_note", function="lower")
        made.check()
    made.upsert(["k0003", "k0055"], 20, "n20")
    made.check()
    found = made.table.to_arrow(["id"], filter=pa.compute.field("note") == "n20")
    assert sorted(found["id"].to_pylist()) == ["k0003", "k0055"]
    made.services.drop_index("column_stats")


def change_version(made: Boot) -> None:
    """Up and down; rows are changed between."""
    kept = bool(made.skeletons())
    for ts, version in enumerate((8, 6, 9), 10):
        made.upsert(["k0003", "k0101"], ts, f"n{ts}")
        assert made.services.upgrade(version).after == made.table.version == version
        made.check()
    assert bool(made.skeletons()) == kept


def ttl(made: Boot) -> None:
    """What was bootstrapped has no time, and so does not expire; neither does a partition that was just written to."""
    made.upsert(["k0003"], 10, "n10")
    for kind in ("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"):
        by = {DAYS: "1", "hoodie.partition.ttl.management.strategy.type": kind}
        assert made.services.plan_expire_partitions(by).expired == ()
        assert made.services.expire_partitions(by).partitions == ()


def truncate(made: Boot) -> None:
    made.upsert(["k0003"], 10, "n10")
    made.table.truncate(["city=c0"])
    made.notes = {key: note for key, note in made.notes.items() if key >= "k0100"}
    made.check()
    made.services.clean(ONE_VERSION)
    made.check()
    made.table.delete_partitions(["city=c1"])
    made.notes = {key: note for key, note in made.notes.items() if key >= "k0200"}
    made.services.clean(ONE_VERSION)
    made.check()
    made.table.truncate()
    made.notes = {}


def repair(made: Boot) -> None:
    made.upsert(["k0003"], 10, "n10")
    assert made.services.plan_repair().findings == ()
    assert made.services.repair().repaired == ()


SERVICES: list[Callable[[Boot], None]] = [
    clean,
    archive,
    compact,
    compact_logs,
    cluster,
    rollback,
    restore,
    index,
    change_version,
    ttl,
    truncate,
    repair,
]
KINDS: dict[str, dict[str, Any]] = {
    "cow": {},
    "mor": {TYPE: "MERGE_ON_READ"},
    "mor6": {TYPE: "MERGE_ON_READ", "hoodie.write.table.version": "6"},
    "mixed": {TYPE: "MERGE_ON_READ", **BY_REGEX},
    "full": FULL,
}
CASES = [
    (kind, service)
    for kind, options in KINDS.items()
    for service in SERVICES
    if TYPE in options or service not in (compact, compact_logs)
]
"""Kinds and the services that they have: only MERGE_ON_READ has log files to compact."""
