"""A table's whole life in turns: writes and services of both sides, and what must be true after each of them.

Data flow: a test draws turns (:class:`Life` has a method for each), each done by ``us`` or by
``hudi``. The life keeps its own dictionary of the rows, and a copy of it for every commit; after a turn it compares
both sides with it, travels in time, and looks whether the history has every instant once.
"""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import HudiError, HudiWarning
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant
from hudi_fast.timeline.transition import revert_to_inflight
from hudi_fast.view.table_state import TableState, load_state
from tests.interop.life_tables import CITY, RETAINED, assert_rows, can_go_back, made, rows_of
from tests.interop.mor_sides import MorSides
from tests.interop.sides import data_columns, trips
from tests.support.instrumented_storage import FaultyStorage
from tests.support.small_tables import write_to

__all__ = ["Life"]

SORT = "hoodie.clustering.plan.strategy.sort.columns"
GONE = "hoodie.datasource.write.partitions.to.delete"
COW = "COPY_ON_WRITE"
SETTINGS = ("hoodie.write.auto.upgrade", "hoodie.write.table.version")
NAMES = {6: "SIX", 8: "EIGHT", 9: "NINE"}


@dataclass
class Life:
    """One table, those who change it, and what is known of it.

    Attributes:
        sides: the table and real Hudi.
        draw: everything that is left to chance.
        rows: what the table holds, by key.
        then: what it held after each commit that can still be travelled to.
        made: instants that the history must have.
        gone: instants that were rolled back.
        told: what happened, for people.
        saved: savepoint, and the rows then.
        clock: ordering value of the newest rows.
        fresh: first number of a key that was not used yet.
        floor: to this instant, and earlier ones, is not travelled.
        held: there has been a savepoint.
    """

    sides: MorSides
    draw: random.Random
    rows: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    then: dict[str, dict[str, tuple[Any, ...]]] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    told: list[str] = field(default_factory=list)
    saved: tuple[str, dict[str, tuple[Any, ...]]] | None = None
    clock: int = 1
    fresh: int = 0
    floor: str = ""
    held: bool = False

    # ---- what there is

    @property
    def state(self) -> TableState:
        return load_state(Storage(self.sides.path))

    def writes(self) -> list[Instant]:
        return list(self.state.timeline.writes())

    @property
    def services(self) -> Any:
        return self.sides.table.services

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.sides.options)

    # ---- rows

    def some(self, share: float = 0.4, new: int = 3) -> pa.Table:
        """Some of the stored rows with later values, and a few new ones."""
        self.clock += 1
        stored = [int(key.removeprefix("trip-")) for key in sorted(self.rows)]
        chosen = self.draw.sample(stored, int(len(stored) * share))
        fresh = range(self.fresh, self.fresh + new)
        self.fresh += new
        return made([*chosen, *fresh], self.clock, f"turn {self.clock}")

    def put(self, by: str, rows: pa.Table, operation: str, more: Mapping[str, Any] | None = None) -> None:
        """A write; the model is the caller's."""
        (self.sides.we_write if by == "us" else self.sides.hudi_writes)(rows, operation, more)

    # ---- writes

    def upsert(self, by: str) -> None:
        rows = self.some()
        self.put(by, rows, "upsert")
        self.rows.update(rows_of(rows))

    def insert(self, by: str) -> None:
        rows = self.some(0, 7)
        self.put(by, rows, "insert")
        self.rows.update(rows_of(rows))

    def delete(self, by: str) -> None:
        rows = self.some(0.15, 0)
        self.put(by, rows, "delete")
        self.rows = {key: row for key, row in self.rows.items() if key not in set(rows["id"].to_pylist())}

    def insert_overwrite(self, by: str) -> None:
        self.clock += 1
        first = self.fresh + -self.fresh % 3 + self.draw.randrange(3)
        rows = made(range(first, first + 18, 3), self.clock, f"over {self.clock}")
        self.fresh = first + 18
        self.put(by, rows, "insert_overwrite")
        self.leave(rows["city"][0].as_py())
        self.rows.update(rows_of(rows))

    def delete_partition(self, by: str) -> None:
        city = f"city{self.draw.randrange(3)}"
        self.put(by, trips([]), "delete_partition", {GONE: city})
        self.leave(city)

    def leave(self, city: str) -> None:
        self.rows = {key: row for key, row in self.rows.items() if row[CITY] != city}

    # ---- services

    def clean(self, by: str) -> None:
        if by == "us":
            self.services.clean(self.options)
        else:
            self.call("run_clean", f"clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => {RETAINED}", True)

    def archive(self, by: str) -> None:
        """Of files that a savepoint kept, gone since, release 0.15 archives what says that they were replaced.

        Their rows come back then, on both sides: after such a savepoint it does not archive here.
        """
        if by == "us" or (self.held and self.sides.hudi.version.startswith("0.")):
            self.services.archive(self.options)
        else:
            self.call("archive_commits", f"min_commits => 4, max_commits => 5, retain_commits => {RETAINED}")

    def cluster(self, by: str) -> None:
        order = self.draw.choice(["", "id", "fare,id"])
        if by == "us":
            self.services.cluster({**self.options, **({SORT: order} if order else {})})
        else:
            self.hudi_clusters("scheduleAndExecute", order)

    def compact(self, by: str) -> None:
        if by == "us":
            self.services.compact(self.compacting)
        else:
            self.sides.hudi_compacts(more=self.quoted())

    def compact_logs(self, by: str) -> None:
        if by == "us":
            self.services.compact_logs(self.options)
            return
        rows = self.some()
        self.put(by, rows, "upsert", {"hoodie.log.compaction.inline": "true"})
        self.rows.update(rows_of(rows))

    def savepoint(self, by: str) -> None:
        """One savepoint at a time: of the newest commit."""
        if self.saved is not None:
            return
        newest = self.writes()[-1].requested
        if by == "us":
            self.services.savepoint(options=self.options)
        else:
            self.call("create_savepoint", f"commit_time => '{newest}'")
        self.saved = newest, dict(self.rows)

    def delete_savepoint(self, by: str) -> None:
        if self.saved is None:
            return
        instant, self.saved = self.saved[0], None
        if by == "us":
            self.services.delete_savepoint(instant, self.options)
        else:
            self.call("delete_savepoint", f"instant_time => '{instant}'")
        self.held = True

    def restore(self, by: str) -> None:
        """To a savepoint of the other side, after a write of the other side."""
        other = self.other(by)
        self.savepoint(other)
        assert self.saved is not None
        self.upsert(other)
        instant, rows = self.saved
        before = {one.requested for one in self.writes()}
        if by == "us" or not can_go_back(self.sides.path, instant, restore=True):
            self.services.restore(instant, self.options)
        else:
            self.call("rollback_to_savepoint", f"instant_time => '{instant}'")
        kept = {one.requested for one in self.writes()}
        assert max(kept) <= instant
        # What was requested before the savepoint and ended after it goes, too, and rollbacks go along.
        self.gone |= before - kept
        self.made = {time for time in self.made if time <= instant or time in before}
        self.rows = dict(rows)
        self.then, self.floor = {}, instant  # cleans since then may have gone past it

    def rollback(self, by: str) -> None:
        """Of a commit of the other side."""
        before = dict(self.rows)
        self.upsert(self.other(by))
        newest = self.writes()[-1].requested
        if by == "us" or not can_go_back(self.sides.path, newest):
            self.services.rollback(newest, self.options)
        else:
            self.call("rollback_to_instant", f"instant_time => '{newest}'")
        self.gone.add(newest)
        self.rows = before

    def failed_write(self, by: str) -> None:
        """A write of one side that died; the next one, of either side, clears up."""
        before = dict(self.rows)
        if by == "hudi":
            self.upsert(by)
            state = self.state
            newest = state.timeline.writes()[-1]
            revert_to_inflight(state.storage, state.config, newest)
            self.rows = before
        else:
            self.die()
        self.look()
        # Without its markers, gone by then, Hudi deletes no file of that write. Release 0.15 takes the time of its own
        # write before it rolls back: its readers stop at the block that says so, which is later than the newest commit,
        # and miss what the write logged until somebody commits again. Its metadata table has 1 for the log's size.
        if by == "hudi" or (self.sides.hudi.version.startswith("0.") and self.sides.table.table_type != COW):
            after = self.draw.choice(["us", "rollback"])
        else:
            after = self.draw.choice(["us", "hudi", "hudi", "rollback"])
        self.told[-1] += f" then {after}"
        if after == "rollback":
            self.services.rollback(options=self.options)
        else:
            self.upsert(after)

    def die(self) -> None:
        """A write of ours that dies at any call that changes files, before it is committed."""
        rows, settings = self.some(), {**self.options, "hoodie.datasource.write.operation": "upsert"}
        at = self.draw.randrange(5, 260)
        kind = self.draw.choice(["before", "after", "tear"])
        self.told[-1] += f" at {at} {kind}"
        before = self.writes()[-1].requested
        with contextlib.suppress(HudiError, OSError), warnings.catch_warnings():
            warnings.simplefilter("ignore", HudiWarning)
            write_to(FaultyStorage(self.sides.path, at=at, kind=kind, die=True), rows, settings)
        if self.writes()[-1].requested != before:
            self.told[-1] += " (done)"
            self.rows.update(rows_of(rows))

    # ---- what one side plans and the other carries out

    def pending_compaction(self, by: str) -> None:
        planner, runner = self.other(by), by
        if planner == "us":
            self.services.schedule_compact(self.compacting)
        else:
            self.sides.hudi_compacts("schedule", self.quoted())
        self.look()
        self.upsert(self.draw.choice(["us", "hudi"]))
        self.look()
        if runner == "us":
            self.services.compact(self.options, pending_only=True)
        else:
            self.sides.hudi_compacts("execute", self.quoted())
        assert not self.state.timeline.pending_compactions

    def pending_clustering(self, by: str) -> None:
        planner, runner = self.other(by), by
        if planner == "us":
            self.services.schedule_cluster({**self.options, SORT: "seats,id"})
        else:
            self.hudi_clusters("schedule", "seats,id")
        self.look()
        if self.draw.random() < 0.7:
            self.insert(self.draw.choice(["us", "hudi"]))
            self.look()
        if runner == "us":
            self.services.cluster(self.options, pending_only=True)
        else:
            self.hudi_clusters("execute")
        assert not self.state.timeline.pending_clusterings

    def other(self, by: str) -> str:
        return "hudi" if by == "us" else "us"

    def upgrade(self, by: str, version: int) -> None:
        if by == "us":
            self.services.upgrade(version, self.options)
        else:
            procedure = "upgrade_table" if version > self.sides.table.version else "downgrade_table"
            self.call(procedure, f"to_version => '{NAMES[version]}'")
        assert self.sides.table.version == version
        self.sides.options = {**self.sides.options, "hoodie.write.table.version": version}
        self.then = {}
        self.tell_hudi()

    # ---- Hudi's procedures

    @contextlib.contextmanager
    def as_it_is(self) -> Iterator[None]:
        """Meanwhile Hudi's procedures leave the table's version alone, and the metadata table's."""
        self.tell_hudi()
        try:
            yield
        except BaseException as error:
            error.add_note("\n".join(self.told))
            raise
        finally:
            for key in SETTINGS:
                self.sides.hudi.sql(f"RESET {key}")

    def tell_hudi(self) -> None:
        values = ("false", self.options["hoodie.write.table.version"])
        if not self.sides.hudi.version.startswith("0."):
            for key, value in zip(SETTINGS, values, strict=True):
                self.sides.hudi.sql(f"SET {key}={value}")

    @property
    def compacting(self) -> dict[str, Any]:
        return {**self.options, "hoodie.compact.inline.max.delta.commits": 1}

    def quoted(self) -> dict[str, Any]:
        """Options of the metadata table for procedures."""
        return {key: value for key, value in self.options.items() if key.startswith("hoodie.metadata.")}

    def call(self, procedure: str, arguments: str, options: bool = False) -> pa.Table:
        arguments, text = f", {arguments}" if arguments else "", ""
        if options:
            given = {"hoodie.metadata.enable": "true"}
            if not self.sides.hudi.version.startswith("0."):
                given["hoodie.write.auto.upgrade"] = "false"
                given["hoodie.write.table.version"] = str(self.options["hoodie.write.table.version"])
            text = ", options => '" + ",".join(f"{key}={one}" for key, one in given.items()) + "'"
        return self.sides.hudi.sql(f"CALL {procedure}(table => '{self.sides.in_catalog()}'{arguments}{text})")

    def hudi_clusters(self, step: str, order: str = "") -> None:
        text = f", order => '{order}'" if order else ""
        self.call("run_clustering", f"op => '{step}'{text}", options=True)

    # ---- what must be true

    def look(self, hudi: bool = False) -> None:
        """Snapshots are what they should be, and earlier ones, too."""
        assert_rows(data_columns(self.sides.table.to_arrow()), self.rows, "ours")
        if hudi:
            assert_rows(data_columns(self.sides.hudi.read(self.sides.path)), self.rows, "hudi's")

    def remember(self) -> None:
        """After a turn: what can be travelled to, and what the history has."""
        timeline = self.state.timeline
        writes = [one.requested for one in timeline.writes()]
        if writes:
            self.then[writes[-1]] = dict(self.rows)
        kept = [time for time in writes[-RETAINED:] if time > self.floor]
        self.then = {time: rows for time, rows in self.then.items() if time in kept}
        found = self.sides.table.history(archived=True)
        found = found.filter(pc.field("action") != "savepoint")
        times = found["instant"].to_pylist()
        assert len(times) == len(set(times)), sorted(time for time in times if times.count(time) > 1)
        assert self.made - self.gone <= set(times), sorted(self.made - self.gone - set(times))
        assert not self.gone & set(times), sorted(self.gone & set(times))
        self.made |= {one.requested for one in timeline.completed() if one.action != "savepoint"}

    def travel(self) -> None:
        """Both sides see the same of two earlier instants."""
        for time in sorted(self.then)[:2]:
            ours = self.sides.table.to_arrow(as_of=time)
            assert_rows(data_columns(ours), self.then[time], f"ours as of {time}")
            theirs = self.sides.hudi.read(self.sides.path, {"as.of.instant": time})
            assert_rows(data_columns(theirs), self.then[time], f"hudi's as of {time}")

    def validate(self) -> None:
        """The metadata table is used, and tells the truth by our own look at it."""
        assert metadata_of(open_state(Storage(self.sides.path))) is not None
        result = self.services.validate(options=self.options)
        assert result.ok, result.differences.to_pylist()

    def hudi_validates(self) -> None:
        told = self.call("validate_metadata_table_files", "").to_pylist()
        assert told == []
