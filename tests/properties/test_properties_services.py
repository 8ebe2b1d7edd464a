"""Random writes, services, failures and undoing on random kinds of tables, against a dict with a memory.

Every rule changes the table and the dict; after every step a snapshot is the dict, the newest past states are what they
were (or refused because they were cleaned), the history can be read, and every few steps the metadata table tells the
truth. A verb may refuse; then nothing has changed.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.view.table_state import load_state
from tests.support.examples import examples
from tests.support.instrumented_storage import FaultyStorage
from tests.support.memory import memory_folder
from tests.support.metadata_checks import assert_metadata_true
from tests.support.small_tables import OPTIONS, rows_of, write_to

KEYS = 12
TRAVELS = 3
TRUTH_EVERY = 4
NOW = {
    "hoodie.log.compaction.blocks.threshold": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
}
INLINE = {
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
    "hoodie.compact.inline": "true",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "2",
}
keys = st.lists(st.integers(0, KEYS - 1), max_size=8, unique=True)
some_keys = st.lists(st.integers(0, KEYS - 1), min_size=1, max_size=8, unique=True)
Rows = dict[str, tuple[Any, ...]]


class ServedTable(RuleBasedStateMachine):
    """A table that is written, served, broken and restored."""

    def __init__(self) -> None:
        super().__init__()
        self.path = tempfile.mkdtemp(dir=memory_folder())
        self.rows: Rows = {}
        self.states: list[tuple[str, Rows]] = []
        self.saved: list[tuple[str, list[tuple[str, Rows]]]] = []
        self.travels_from = ""
        self.ts = self.inserted = 0
        self.steps = 0
        self.is_settled = True

    @initialize(
        version=st.sampled_from(["6", "8", "9"]),
        table_type=st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]),
        metadata=st.sampled_from(["true", "true", "false"]),
        first=some_keys,
    )
    def create(self, version: str, table_type: str, metadata: str, first: list[int]) -> None:
        self.is_mor = table_type == "MERGE_ON_READ"
        self.options: dict[str, Any] = {
            **OPTIONS,
            "hoodie.write.table.version": version,
            "hoodie.datasource.write.table.type": table_type,
            "hoodie.metadata.enable": metadata,
            "hoodie.metadata.compact.max.delta.commits": "4",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.compact.inline": "false",
        }
        hf.write(self.batch(first), self.path, self.options)
        self.wrote(self.given)

    def teardown(self) -> None:
        try:
            if self.states:
                self.settle()
                assert_metadata_true(self.path)
        finally:
            shutil.rmtree(self.path)

    # ---- what the rules are made of

    @property
    def table(self) -> hf.HudiTable:
        return hf.HudiTable.open(self.path)

    @property
    def services(self) -> TableServices:
        return self.table.services

    def batch(self, numbers: list[int]) -> pa.Table:
        """Rows that are newer than all others; the partition of a key never changes."""
        self.ts += 1
        table = pa.table(
            {
                "id": pa.array([f"k{number:02d}" for number in numbers], pa.string()),
                "part": pa.array([f"p{number % 2}" for number in numbers], pa.string()),
                "ts": pa.array([self.ts] * len(numbers), pa.int64()),
                "text": pa.array([f"{self.ts}-{number}" for number in numbers], pa.string()),
            }
        )
        self.given = rows_of(table)
        return table

    def newest(self) -> str:
        last = load_state(Storage(self.path)).timeline.last_completed_write
        assert last is not None
        return last.requested

    def wrote(self, rows: Rows, instant: str | None = None) -> None:
        self.rows = rows
        self.states.append((instant or self.newest(), rows))

    def unless_refused(self, call: Callable[[], Any]) -> Any:
        """What a verb gives; None if it refuses."""
        try:
            return call()
        except hf.HudiError as error:
            event(f"refused: {type(error).__name__} {str(error).replace(self.path, '')[:60]}")
            return None

    def until_it_dies(self, call: Callable[[], Any]) -> None:
        """A call whose storage fails for good at some moment; what it warns of does not count."""
        self.is_settled = False
        with warnings.catch_warnings(), contextlib.suppress(hf.HudiError, OSError):
            warnings.simplefilter("ignore", hf.HudiWarning)
            call()

    def write(self, operation: str, batch: pa.Table, after: Rows, **more: str) -> None:
        named = {**self.options, **more, "hoodie.datasource.write.operation": operation}
        result = self.unless_refused(lambda: self.table.write(batch, operation, named))
        if result is not None and result.instant:
            self.wrote(after, result.instant)

    def settle(self) -> None:
        """What died is taken over or goes."""
        self.unless_refused(lambda: self.services.run_pending(self.options))
        self.upsert([1])
        self.unless_refused(lambda: self.services.index("files", options=self.options) if self.has_metadata() else None)
        self.services.clean({**self.options, "hoodie.clean.commits.retained": "100"})
        self.is_settled = True

    def has_metadata(self) -> bool:
        return bool(self.table.config.metadata_partitions)

    def seen_at(self, instant: str) -> Rows | None:
        """What the table held; None where that was cleaned, or a clean that died was about to."""
        try:
            return rows_of(self.table.to_arrow(as_of=instant))
        except hf.ConfigError as error:
            if "clean" not in str(error):
                raise
        except hf.CorruptTableError:
            if "clean" not in self.services.pending()["service"].to_pylist():
                raise
        return None

    # ---- writes

    @rule(numbers=some_keys)
    def upsert(self, numbers: list[int]) -> None:
        batch = self.batch(numbers)
        self.write("upsert", batch, {**self.rows, **self.given})

    @rule(numbers=some_keys)
    def upsert_and_serve(self, numbers: list[int]) -> None:
        batch = self.batch(numbers)
        inline = {key: value for key, value in INLINE.items() if self.is_mor or "compact" not in key}
        self.write("upsert", batch, {**self.rows, **self.given}, **NOW, **inline)

    @rule(count=st.integers(1, 4))
    def insert(self, count: int) -> None:
        """New keys: an insert does not look whether a log file has deleted what a base file still holds."""
        self.inserted += count
        batch = self.batch(list(range(KEYS + self.inserted - count, KEYS + self.inserted)))
        self.write("insert", batch, {**self.rows, **self.given})

    @rule(numbers=some_keys)
    def delete(self, numbers: list[int]) -> None:
        batch = self.batch(numbers)
        self.write("delete", batch, {key: row for key, row in self.rows.items() if key not in self.given})

    @rule(numbers=some_keys)
    def insert_overwrite(self, numbers: list[int]) -> None:
        batch = self.batch(numbers)
        touched = {row[0] for row in self.given.values()}
        kept = {key: row for key, row in self.rows.items() if row[0] not in touched}
        self.write("insert_overwrite", batch, {**kept, **self.given})

    @rule(part=st.sampled_from(["p0", "p1"]))
    def delete_partition(self, part: str) -> None:
        named = {"hoodie.datasource.write.partitions.to.delete": part}
        kept = {key: row for key, row in self.rows.items() if row[0] != part}
        self.write("delete_partition", pa.table({}), kept, **named)

    @rule(numbers=some_keys, at=st.integers(0, 90), after=st.booleans())
    def a_writer_dies(self, numbers: list[int], at: int, after: bool) -> None:
        batch = self.batch(numbers)
        storage = FaultyStorage(self.path, at=at, kind="after" if after else "before", die=True)
        self.until_it_dies(lambda: write_to(storage, batch, self.options))
        seen = rows_of(self.table.to_arrow())
        changed = {**self.rows, **self.given}
        if seen == changed:
            self.wrote(changed)

    # ---- services

    @rule(verb=st.sampled_from(["compact", "compact_logs", "cluster", "clean"]))
    def plan(self, verb: str) -> None:
        if self.is_mor or "compact" not in verb:
            self.unless_refused(lambda: getattr(self.services, f"schedule_{verb}")(options={**self.options, **NOW}))

    @rule(verb=st.sampled_from(["compact", "compact_logs", "cluster", "clean", "archive", "repair"]))
    def serve(self, verb: str) -> None:
        if self.is_mor or "compact" not in verb:
            self.unless_refused(lambda: getattr(self.services, verb)(options={**self.options, **NOW}))

    @rule(curve=st.sampled_from(["LINEAR", "ZORDER"]))
    def cluster_in_order(self, curve: str) -> None:
        sorting = {
            "hoodie.clustering.plan.strategy.sort.columns": "text,ts",
            "hoodie.layout.optimize.strategy": curve,
        }
        self.unless_refused(lambda: self.services.cluster({**self.options, **NOW, **sorting}))

    @rule()
    def run_what_waits(self) -> None:
        self.unless_refused(lambda: self.services.run_pending({**self.options, **NOW}))

    @rule(
        verb=st.sampled_from(["compact", "compact_logs", "cluster", "clean", "archive", "rollback"]),
        at=st.integers(5, 150),
    )
    def a_service_dies(self, verb: str, at: int) -> None:
        if not self.is_mor and "compact" in verb:
            return
        services = TableServices(FaultyStorage(self.path, at=at, die=True))
        self.until_it_dies(lambda: getattr(services, verb)(options={**self.options, **NOW}))

    @precondition(lambda self: self.has_metadata())
    @rule(name=st.sampled_from(["record_index", "column_stats", "bloom_filters"]), drop=st.booleans())
    def index(self, name: str, drop: bool) -> None:
        if drop:
            self.unless_refused(lambda: self.services.drop_index(name, self.options))
        else:
            self.unless_refused(lambda: self.services.index(name, options=self.options))

    @rule(version=st.sampled_from([5, 6, 8, 9]))
    def change_version(self, version: int) -> None:
        before = self.table.version
        if version == 5 and self.has_metadata():
            return
        if self.unless_refused(lambda: self.services.upgrade(version, self.options)) is not None:
            self.options["hoodie.write.table.version"] = str(version)
            if self.is_mor and version <= 6 < before:
                # Only the newest slices are compacted: version 6 cannot read the log files of those before.
                self.travels_from = self.newest()

    # ---- undoing

    @rule()
    def savepoint(self) -> None:
        made = self.unless_refused(lambda: self.services.savepoint(options=self.options))
        if made is not None:
            self.saved.append((made.instant, list(self.states)))

    @precondition(lambda self: self.saved)
    @rule(which=st.integers(0, 9))
    def delete_savepoint(self, which: int) -> None:
        instant, _ = self.saved.pop(which % len(self.saved))
        self.services.delete_savepoint(instant, self.options)

    @precondition(lambda self: self.saved)
    @rule()
    def restore(self) -> None:
        instant, states = self.saved[-1]
        if self.unless_refused(lambda: self.services.restore(instant, self.options)) is not None:
            self.states = list(states)
            self.rows = states[-1][1]

    @rule()
    def roll_back_the_newest(self) -> None:
        newest = self.newest()
        if len(self.states) < 2:
            return
        if self.unless_refused(lambda: self.services.rollback(newest, self.options)) is None:
            return
        if self.states[-1][0] == newest:
            self.states.pop()
            self.rows = self.states[-1][1] if self.states else {}
            self.saved = [one for one in self.saved if one[0] != newest]

    # ---- what is true after every step

    @invariant()
    def holds_the_rows(self) -> None:
        if self.states:
            assert rows_of(self.table.to_arrow()) == self.rows

    @invariant()
    def remembers(self) -> None:
        for instant, rows in self.states[-TRAVELS:]:
            if instant < self.travels_from:
                continue
            assert self.seen_at(instant) in (None, rows), instant

    @invariant()
    def tells_its_history(self) -> None:
        if self.states:
            assert self.table.history().num_rows
            assert self.services.pending().num_rows < 20

    @invariant()
    def has_a_true_metadata_table(self) -> None:
        self.steps += 1
        if self.states and self.is_settled and self.steps % TRUTH_EVERY == 0:
            assert_metadata_true(self.path)


TestServedTable = pytest.mark.slow(ServedTable.TestCase)
TestServedTable.settings = settings(
    max_examples=examples(16), stateful_step_count=14, suppress_health_check=list(HealthCheck)
)
