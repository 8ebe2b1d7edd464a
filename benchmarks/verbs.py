"""The table's verbs in one process, on 200 000 rows of 12 columns in 10 partitions."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hudi_fast.kernels import warm_up

from hudi_fast import HudiTable, write

ROWS = 200_000
FILES, ROWS_PER_FILE = 1000, 20
PARTITIONS = 10
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
BY_RECORD_INDEX = {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": True}
BULK = {**OPTIONS, "hoodie.datasource.write.operation": "bulk_insert"}


def trips(count: int, first: int = 0, ts: int = 0) -> pa.Table:
    """Rows with the numbers from ``first`` on, a tenth of them in each partition."""
    rng = np.random.default_rng(first + 1)
    numbers = np.arange(first, first + count)
    keys = pc.binary_join_element_wise("key-0000-0000-0000", pc.cast(pa.array(numbers * 7919), pa.string()), "-")
    columns: dict[str, pa.Array] = {
        "uuid": keys,
        "city": pc.binary_join_element_wise("city", pc.cast(pa.array(numbers % PARTITIONS), pa.string()), "-"),
        "ts": pa.array(np.full(count, ts)),
    }
    columns |= {f"value_{place}": pa.array(rng.random(count)) for place in range(9)}
    return pa.table(columns)


class Writes:
    """A write into a copy of a table; making the copy is not timed."""

    params = ("bulk_insert", "upsert 1 %", "upsert 10 % and 2 % new", "upsert 100 %", "delete 1 %")
    param_names = ("verb",)
    number = 1
    warmup_time = 0

    def setup_cache(self) -> str:
        folder = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        write(trips(ROWS), f"{folder}/table", BULK)
        return folder

    def setup(self, folder: str, verb: str) -> None:
        warm_up()
        self.path = tempfile.mkdtemp(dir=folder)
        rows = trips(ROWS, ts=1)
        if verb == "bulk_insert":
            self.rows, self.options = rows, BULK
            return
        shutil.copytree(f"{folder}/table", self.path, dirs_exist_ok=True)
        self.options = OPTIONS
        if verb == "upsert 1 %":
            self.rows = rows.take(pa.array(np.arange(0, ROWS, 100)))
        elif verb.startswith("upsert 10 %"):
            self.rows = pa.concat_tables([rows.take(pa.array(np.arange(0, ROWS, 10))), trips(ROWS // 50, ROWS)])
        elif verb == "upsert 100 %":
            self.rows = rows
        else:
            self.rows = rows.take(pa.array(np.arange(0, ROWS, 100)))
            self.options = {**OPTIONS, "hoodie.datasource.write.operation": "delete"}

    def teardown(self, folder: str, verb: str) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def time_write(self, folder: str, verb: str) -> None:
        write(self.rows, self.path, self.options)

    def peakmem_write(self, folder: str, verb: str) -> None:
        write(self.rows, self.path, self.options)

    def track_bytes_written(self, folder: str, verb: str) -> int:
        return write(self.rows, self.path, self.options).bytes_written

    track_bytes_written.unit = "bytes"  # type: ignore[attr-defined]


class Streams:
    """Writes of a stream, whose rows are ten times the memory of the write or fit into it."""

    params = (("bulk_insert", "upsert"), ("memory", "temporary files"))
    param_names = ("operation", "where")

    def setup(self, operation: str, where: str) -> None:
        warm_up()
        self.path = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        self.options = {**OPTIONS, "hoodie.datasource.write.operation": operation}
        if where == "temporary files":
            self.options["hoodie.memory.merge.max.size"] = 2 << 20

    def teardown(self, operation: str, where: str) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _write(self) -> None:
        write(
            (trips(ROWS // 20, start).to_batches()[0] for start in range(0, ROWS, ROWS // 20)), self.path, self.options
        )

    def time_write(self, operation: str, where: str) -> None:
        self._write()

    def peakmem_write(self, operation: str, where: str) -> None:
        self._write()


class Reads:
    """Snapshot reads."""

    def setup_cache(self) -> str:
        folder = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        write(trips(ROWS), f"{folder}/table", BULK)
        return str(Path(folder) / "table")

    def setup(self, path: str) -> None:
        self.table = HudiTable.open(path)

    def time_all_columns(self, path: str) -> None:
        self.table.to_arrow()

    def time_two_columns(self, path: str) -> None:
        self.table.to_arrow(columns=["uuid", "ts"])

    def time_one_partition(self, path: str) -> None:
        self.table.to_arrow(filter=pc.field("city") == "city-3")

    def time_batches(self, path: str) -> None:
        for _ in self.table.to_batches():
            pass

    def peakmem_batches(self, path: str) -> None:
        for _ in self.table.to_batches():
            pass


class SmallUpsert:
    """Upsert 100 rows into a table of 1000; planning and timelines take most of the time."""

    params = ("files and statistics", "record index too", "no metadata table")
    param_names = ("metadata",)
    number = 1

    def setup(self, metadata: str) -> None:
        warm_up()
        self.path = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        self.options = {**OPTIONS, "hoodie.metadata.enable": metadata != "no metadata table"}
        if metadata.startswith("record index"):
            self.options |= BY_RECORD_INDEX
        write(trips(1000), self.path, self.options)
        self.rows = trips(100, ts=1)
        write(self.rows, self.path, self.options)

    def teardown(self, metadata: str) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def time_upsert(self, metadata: str) -> None:
        write(self.rows, self.path, self.options)


class RecordIndex:
    """Upsert a tenth of the rows into one of ten partitions by record index, and look up one row by its key."""

    number = 1

    def setup_cache(self) -> str:
        folder = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        write(trips(ROWS), f"{folder}/table", {**BULK, **BY_RECORD_INDEX})
        return folder

    def setup(self, folder: str) -> None:
        warm_up()
        self.path = tempfile.mkdtemp(dir=folder)
        shutil.copytree(f"{folder}/table", self.path, dirs_exist_ok=True)
        self.rows = trips(ROWS, ts=1).take(pa.array(np.arange(0, ROWS, PARTITIONS)))
        self.one = pc.field("uuid") == self.rows["uuid"][7].as_py()

    def teardown(self, folder: str) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def time_upsert(self, folder: str) -> None:
        write(self.rows, self.path, {**OPTIONS, **BY_RECORD_INDEX})

    def time_look_up_one(self, folder: str) -> None:
        HudiTable.open(self.path).to_arrow(filter=self.one)


class ManyFiles:
    """A filter that keeps 10 of 1000 files."""

    timeout = 600

    def setup_cache(self) -> str:
        folder = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        rows = trips(FILES * ROWS_PER_FILE)
        # Rows are sorted by value_0, so each file holds a range of it.
        rows = rows.set_column(rows.column_names.index("value_0"), "value_0", pa.array(np.arange(rows.num_rows)))
        for first in range(0, rows.num_rows, PARTITIONS * ROWS_PER_FILE):
            write(rows.slice(first, PARTITIONS * ROWS_PER_FILE), f"{folder}/table", BULK)
        return f"{folder}/table"

    def setup(self, path: str) -> None:
        warm_up()
        self.table = HudiTable.open(path)
        self.few = pc.field("value_0") < PARTITIONS * ROWS_PER_FILE

    def time_plan(self, path: str) -> None:
        self.table.explain(self.few)

    def time_read(self, path: str) -> None:
        self.table.to_arrow(columns=["uuid"], filter=self.few)

    def time_list(self, path: str) -> None:
        self.table.files()

    def track_files_read(self, path: str) -> int:
        return int(self.table.explain(self.few)["after"][-1].as_py())

    track_files_read.unit = "files"  # type: ignore[attr-defined]
