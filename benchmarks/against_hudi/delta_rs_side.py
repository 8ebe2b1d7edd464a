"""The side of delta-rs: a Delta Lake table, written and read by the ``deltalake`` package in one process.

A write of a new table loads it; any other is a merge by key and partition that keeps the row with the larger ``ts``.
Prints one JSON line. ``--engine`` has no effect.
"""

from __future__ import annotations

import json
import os
from importlib.metadata import version

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder, WriterProperties, write_deltalake
from side import Verbs, parse_work, process_tree, timed

ENCODING = WriterProperties(compression="ZSTD", compression_level=1)
SAME_ROW = "t.uuid = s.uuid and t.city = s.city"


def write(rows: str, table: str, _: dict[str, str]) -> None:
    """Load a new table, or merge."""
    data = pq.read_table(rows, partitioning=None)
    if not DeltaTable.is_deltatable(table):
        write_deltalake(table, data, partition_by=["city"], writer_properties=ENCODING)
        return
    merge = DeltaTable(table).merge(data, SAME_ROW, source_alias="s", target_alias="t", writer_properties=ENCODING)
    merge.when_matched_update_all("s.ts >= t.ts").when_not_matched_insert_all().execute()


def read(table: str, _: dict[str, str]) -> None:
    """Read every row and drop it."""
    for _ in batches(table):
        pass


def keep(table: str, folder: str, _: dict[str, str]) -> None:
    """Store every row as one Parquet file in the folder."""
    rows = batches(table)
    with pq.ParquetWriter(os.path.join(folder, "rows.parquet"), pa.schema(rows.schema)) as file:
        for batch in rows:
            file.write_batch(pa.record_batch(batch))


def batches(table: str) -> pa.RecordBatchReader:
    """All rows of the table."""
    query = QueryBuilder().register("t", DeltaTable(table)).execute("select * from t")
    return pa.RecordBatchReader.from_stream(query)


def main() -> None:
    """Execute the work of the command line."""
    work, _ = parse_work(__doc__ or "")
    os.environ["TOKIO_WORKER_THREADS"] = str(work.cores)
    run = timed(work, Verbs(read, keep, write), lambda: process_tree(os.getpid()))
    print(json.dumps({**run, "versions": {"delta-rs": version("deltalake")}, "options": {}}), flush=True)


if __name__ == "__main__":
    main()
