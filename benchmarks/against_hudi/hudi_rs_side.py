"""hudi-rs's side, which only reads: the ``hudi`` package in a process of its own; prints one JSON line as all sides do.

Batches are taken from its stream and dropped, as on hudi_fast's side; ``--engine`` means nothing here.
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
    """Every row, dropped."""
    for _ in HudiTableBuilder.from_base_uri(table).build().read_stream():
        pass


def keep(table: str, folder: str, _: dict[str, str]) -> None:
    """Every row, as one Parquet file in the folder."""
    batches = list(HudiTableBuilder.from_base_uri(table).build().read_stream())
    pq.write_table(pa.Table.from_batches(batches), os.path.join(folder, "rows.parquet"))


def main() -> None:
    """Do the work of the command line."""
    work, _ = parse_work(__doc__ or "")
    # Its threads are Tokio's: one for each core unless told.
    os.environ["TOKIO_WORKER_THREADS"] = str(work.cores)
    run = timed(work, Verbs(read, keep), lambda: process_tree(os.getpid()))
    print(json.dumps({**run, "versions": {"hudi-rs": version("hudi")}, "options": {}}), flush=True)


if __name__ == "__main__":
    main()
