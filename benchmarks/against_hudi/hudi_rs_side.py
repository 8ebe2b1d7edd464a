"""The side of the ``hudi`` package, an older hudi-rs that only reads: runs in a separate process, prints one JSON line.

Drops every batch of its stream, like the side of hudi_fast. ``--engine`` has no effect.
"""

from __future__ import annotations

import json
import os
from importlib.metadata import version

import pyarrow as pa
import pyarrow.parquet as pq
from hudi import HudiTableBuilder
from side import Verbs, parse_work, process_tree, timed


def read(table: str, _: dict[str, str]) -> None:
    """Read every row and drop it."""
    for _ in HudiTableBuilder.from_base_uri(table).build().read_stream():
        pass


def keep(table: str, folder: str, _: dict[str, str]) -> None:
    """Store every row as one Parquet file in the folder."""
    batches = list(HudiTableBuilder.from_base_uri(table).build().read_stream())
    pq.write_table(pa.Table.from_batches(batches), os.path.join(folder, "rows.parquet"))


def main() -> None:
    """Execute the work of the command line."""
    work, _ = parse_work(__doc__ or "")
    # hudi-rs uses Tokio's threads, by default one for each core.
    os.environ["TOKIO_WORKER_THREADS"] = str(work.cores)
    run = timed(work, Verbs(read, keep), lambda: process_tree(os.getpid()))
    print(json.dumps({**run, "versions": {"hudi-rs": version("hudi")}, "options": {}}), flush=True)


if __name__ == "__main__":
    main()
