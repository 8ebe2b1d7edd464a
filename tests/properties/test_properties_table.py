"""Random verbs on random kinds of tables and indexes, against a dict; at the end, the metadata table against both."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import hudi_fast as hf
from tests.properties.table_model import Counts, Model, Row
from tests.support.examples import examples
from tests.support.memory import memory_folder
from tests.support.metadata_checks import assert_metadata_true
from tests.support.small_tables import assert_tidy

IDS = [*(f"k{number:02d}" for number in range(24)), "ключ", "鍵", "😀", "k%/=1"]
PARTS = ["a", "b c", "ü", None, ""]
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "part": pa.string(),
        "ts": pa.int64(),
        "v": pa.int32(),
        "_hoodie_is_deleted": pa.bool_(),
    }
)

RECORD_INDEX = {
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.record.index.update.partition.path": "true",
}
PARTITION_FIELD = "hoodie.datasource.write.partitionpath.field"
SECONDARY = {"hoodie.metadata.index.secondary.column": "v", "hoodie.index.name": "by_v"}
BY_METADATA = {
    "hoodie.bloom.index.use.metadata": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.index.bloom.filter.file.group.count": "2",
}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"}

ids, parts = st.sampled_from(IDS), st.sampled_from(PARTS)
times = st.one_of(st.none(), st.integers(-3, 12))
numbers = st.one_of(st.none(), st.integers(0, 9))
rows = st.builds(Row, id=ids, part=parts, ts=times, v=numbers)
changes = st.builds(Row, id=ids, part=parts, ts=times, v=numbers, gone=st.sampled_from([False] * 5 + [True]))
batches = st.lists(rows, max_size=14)


def table_of(batch: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": r.id, "part": r.part, "ts": r.ts, "v": r.v, "_hoodie_is_deleted": r.gone} for r in batch], SCHEMA
    )


class TableMachine(RuleBasedStateMachine):
    """Every rule writes to the table and to the model; every invariant compares them."""

    def __init__(self) -> None:
        super().__init__()
        self.path = tempfile.mkdtemp(dir=memory_folder())
        self.past: list[tuple[str, dict]] = []

    @initialize(
        version=st.sampled_from(["6", "8", "9"]),
        partitioned=st.booleans(),
        by_time=st.booleans(),
        index=st.sampled_from(
            [
                "SIMPLE",
                "BLOOM",
                "GLOBAL_SIMPLE",
                "GLOBAL_BLOOM",
                "BLOOM by metadata",
                "RECORD",
                "GLOBAL_RECORD",
                "BUCKET",
            ]
        ),
        hive_style=st.booleans(),
        meta=st.sampled_from([True, True, True, False]),
        secondary=st.booleans(),
        first=batches,
    )
    def create(self, version, partitioned, by_time, index, hive_style, meta, secondary, first) -> None:
        if index == "RECORD" and version != "9":
            index = "GLOBAL_RECORD"  # the other is of release 1.1
        self.model = Model(partitioned, by_time, index.startswith("GLOBAL"))
        self.prepare(version, partitioned, by_time, index, hive_style, meta, secondary)
        result = hf.write(table_of(first), self.path, self.options)
        counts = self.model.upsert(first, result.instant)
        self.committed(result, counts)

    def prepare(self, version, partitioned, by_time, index, hive_style, meta, secondary) -> None:
        """The options of the table."""
        kind, _, by_metadata = index.partition(" by ")
        self.meta = meta or "RECORD" in kind or bool(by_metadata)  # those need the meta columns
        self.options: dict[str, Any] = {
            "hoodie.table.name": "t",
            "hoodie.write.table.version": version,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING" if by_time else "COMMIT_TIME_ORDERING",
            "hoodie.datasource.write.hive_style_partitioning": str(hive_style and partitioned).lower(),
            "hoodie.datasource.write.partitionpath.urlencode": "true",
            "hoodie.populate.meta.fields": str(self.meta).lower(),
            "hoodie.index.type": kind,
            "hoodie.clean.commits.retained": "100",  # all of the past can be read
            "hoodie.metadata.compact.max.delta.commits": "4",
            "hoodie.index.bloom.num_entries": "20",
            "hoodie.bloom.index.filter.dynamic.max.entries": "60",
            "hoodie.parquet.max.file.size": "8192",
            "hoodie.parquet.small.file.limit": "7000",
            "hudi_fast.threads": "2",
        }
        self.hive_style = hive_style and partitioned
        if partitioned:
            self.options[PARTITION_FIELD] = "part"
        if "RECORD" in kind:
            self.options |= RECORD_INDEX | (SECONDARY if secondary and version != "6" else {})
            self.options["hoodie.index.type"] = kind + "_LEVEL_INDEX"
        elif kind == "BUCKET":
            self.options |= BUCKETS
        elif by_metadata:
            self.options |= BY_METADATA

    @property
    def table(self) -> hf.HudiTable:
        return hf.HudiTable.open(self.path)

    def write(self, batch: list[Row], operation: str, **more: str) -> hf.WriteResult:
        return self.table.write(table_of(batch), operation, {**self.settings(), **more})

    @property
    def knows_duplicates(self) -> bool:
        """Whether an insert can tell which keys are stored."""
        return not self.model.is_global

    def settings(self) -> dict[str, Any]:
        return {key: value for key, value in self.options.items() if "version" not in key}

    def committed(self, result: hf.WriteResult, counts: Counts) -> None:
        assert (result.inserts, result.updates, result.deletes) == (counts.inserts, counts.updates, counts.deletes)
        self.past.append((result.instant, dict(self.model.rows)))

    def unknown(self, batch: list[Row]) -> list[Row]:
        """The rows whose keys are not stored, each key once."""
        fresh: dict[Any, Row] = {}
        for row in batch:
            if self.model.find(row) is None:
                fresh.setdefault(row.id if self.model.is_global else (self.model.place(row), row.id), row)
        return list(fresh.values())

    @rule(batch=st.lists(changes, max_size=14))
    def upsert(self, batch) -> None:
        result = self.write(batch, "upsert")
        self.committed(result, self.model.upsert(batch, result.instant))

    @rule(batch=batches, combine=st.booleans())
    def insert(self, batch, combine) -> None:
        fresh = [row for row in batch if self.model.find(row) is None] if combine else self.unknown(batch)
        if self.model.is_global:
            fresh = self.unknown(batch)  # an insert looks for duplicates in a partition only
        result = self.write(fresh, "insert", **{"hoodie.combine.before.insert": str(combine).lower()})
        kept = self.model.combined(fresh)
        self.model.insert(kept, result.instant)
        self.committed(result, Counts(inserts=len(kept)))

    @precondition(lambda self: self.knows_duplicates)
    @rule(batch=batches)
    def insert_what_is_new(self, batch) -> None:
        once = list({(self.model.place(row), row.id): row for row in batch}.values())
        result = self.write(once, "insert", **{"hoodie.datasource.insert.dup.policy": "drop"})
        kept = [row for row in once if self.model.find(row) is None]
        self.model.insert(kept, result.instant)
        self.committed(result, Counts(inserts=len(kept)))

    @rule(batch=batches, mode=st.sampled_from(["NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION"]))
    def bulk_insert(self, batch, mode) -> None:
        fresh = self.unknown(batch)
        result = self.write(fresh, "bulk_insert", **{"hoodie.bulkinsert.sort.mode": mode})
        self.model.insert(fresh, result.instant)
        self.committed(result, Counts(inserts=len(fresh)))

    @rule(batch=st.lists(rows, max_size=8))
    def delete_keys(self, batch) -> None:
        keys = table_of(batch).select(["id", "part"] if self.model.partitioned else ["id"])
        result = self.table.delete(keys, self.settings())
        self.committed(result, Counts(deletes=self.model.delete(batch)))

    @rule(limit=st.integers(0, 9))
    def delete_where(self, limit) -> None:
        result = self.table.delete(pc.field("v") > limit, self.settings())
        chosen = [row for row, _ in self.model.rows.values() if row.v is not None and row.v > limit]
        self.committed(result, Counts(deletes=self.model.delete(chosen)))

    @rule(batch=batches, whole=st.booleans())
    def overwrite(self, batch, whole) -> None:
        once = list({row.id: row for row in batch}.values())
        while self.model.is_global and not whole:  # else a key would be in two partitions
            touched = {self.model.place(row) for row in once}
            elsewhere = {key for place, key in self.model.rows if place not in touched}
            kept = [row for row in once if row.id not in elsewhere]
            if len(kept) == len(once):
                break
            once = kept
        result = self.write(once, "insert_overwrite_table" if whole else "insert_overwrite")
        self.model.drop_partitions(self.model.places() if whole else {self.model.place(row) for row in once})
        self.model.insert(once, result.instant)
        self.committed(result, Counts(inserts=len(once)))

    @precondition(lambda self: self.model.partitioned)
    @rule(chosen=st.sets(st.sampled_from(["a", "b c", "ü", "__HIVE_DEFAULT_PARTITION__"]), min_size=1, max_size=2))
    def delete_partitions(self, chosen) -> None:
        names = [f"part={name}" if self.hive_style else name for name in sorted(chosen)]
        result = self.table.delete_partitions(names, self.settings())
        self.model.drop_partitions(chosen)
        self.committed(result, Counts())

    @rule(part=st.sampled_from(["a", "b c", "", "zz"]), low=st.integers(-3, 12), key=ids)
    def look_with_filters(self, part, low, key) -> None:
        stored = [row for row, _ in self.model.rows.values()]
        for filter_, wanted in (
            (pc.field("part") == part, [row for row in stored if row.part == part]),
            (pc.field("ts") >= low, [row for row in stored if row.ts is not None and row.ts >= low]),
            (pc.field("id") == key, [row for row in stored if row.id == key]),
            (pc.field("v") == low, [row for row in stored if row.v == low]),
            (
                (pc.field("part") != part) & pc.field("v").is_null(),
                [row for row in stored if row.part not in (part, None) and row.v is None],
            ),
            (pc.field("part").is_null(), [row for row in stored if row.part is None]),
        ):
            found = self.table.to_arrow(columns=["v", "id"], filter=filter_)
            assert found.column_names == ["v", "id"]
            assert sorted(map(repr, found.to_pylist())) == sorted(repr({"v": row.v, "id": row.id}) for row in wanted)

    @rule(data=st.data())
    def look_at_the_past(self, data) -> None:
        instant, wanted = data.draw(st.sampled_from(self.past))
        assert self.seen(self.table.to_arrow(as_of=instant)) == self.wanted(wanted)

    @invariant()
    def holds_the_rows_of_the_model(self) -> None:
        table = self.table
        wanted = self.wanted(self.model.rows)
        assert self.seen(table.to_arrow()) == wanted
        assert self.seen(table.to_batches().read_all()) == wanted
        assert table.stats()["rows"].to_pylist() == [self.rows_in_base_files()]

    def rows_in_base_files(self) -> int:
        return len(self.model.rows)

    @invariant()
    def is_tidy(self) -> None:
        assert_tidy(self.path)

    def seen(self, found: pa.Table) -> list[tuple[Any, ...]]:
        meta = ["_hoodie_partition_path", "_hoodie_record_key", "_hoodie_commit_time"] if self.meta else []
        names = ["id", "part", "ts", "v", *meta]
        return sorted(zip(*(found[name].to_pylist() for name in names), strict=True), key=repr)

    def wanted(self, stored: dict) -> list[tuple[Any, ...]]:
        return sorted(
            ((*row.values(), *self.meta_of(place, row, instant)) for (place, _), (row, instant) in stored.items()),
            key=repr,
        )

    def meta_of(self, place: str, row: Row, instant: str) -> tuple[str, ...]:
        path = f"part={place}" if self.hive_style else place
        return (path, row.id, instant) if self.meta else ()

    def teardown(self) -> None:
        try:
            if hasattr(self, "options"):
                self.metadata_tells_the_truth()
        finally:
            shutil.rmtree(self.path)

    def metadata_tells_the_truth(self) -> None:
        """The metadata table holds what options ask for, and it agrees with the folders and the rows."""
        kinds = set(assert_metadata_true(self.path))
        assert {"files", "column_stats"} <= kinds
        assert ("record_index" in kinds) == ("RECORD" in self.options["hoodie.index.type"])
        assert ("bloom_filters" in kinds) == ("hoodie.bloom.index.use.metadata" in self.options)
        assert ("secondary_index_by_v" in kinds) == ("hoodie.index.name" in self.options)
        differences = self.table.services.validate().differences.to_pylist()
        if self.options["hoodie.index.type"] == "RECORD_LEVEL_INDEX" and PARTITION_FIELD in self.options:
            # An entry may stand for rows of several partitions, and goes with the first of them; nobody asks it.
            differences = [one for one in differences if not one["partition"].startswith("secondary_index")]
        assert differences == []


TestTable = pytest.mark.slow(TableMachine.TestCase)
TestTable.settings = settings(
    max_examples=examples(20), stateful_step_count=14, suppress_health_check=list(HealthCheck)
)
