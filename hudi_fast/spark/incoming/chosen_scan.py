"""Decides whether tasks read the files of a DataFrame themselves (``hudi_fast.scan``), and reads few rows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from hudi_fast.errors import ConfigError
from hudi_fast.spark.incoming.file_scan import FileScan, Split, parts_of
from hudi_fast.spark.incoming.plan_rules import file_scan, reads_parquet
from hudi_fast.spark.incoming.refusal import ScanRefusedError
from hudi_fast.storage.thread_pool import ThreadPool

__all__ = ["ChosenScan", "chosen_scan", "first_rows_of_scan", "refused_scan", "rows_by_footers", "rows_of_scan"]

_SAMPLES = 4
"""Files whose footers are compared with the rules before the write; tasks compare all of them."""

_FEW_FILES = 32
"""The driver opens up to this many files to count their rows."""

_THREADS = 4


@dataclass(frozen=True, slots=True)
class ChosenScan:
    """Who reads the rows of a DataFrame.

    Attributes:
        files: read by Python; None if Spark reads the rows.
        reason: why Spark has to read files; empty if it need not, or the rows are not read from files alone.
    """

    files: FileScan | None = None
    reason: str = ""

    @property
    def remark(self) -> str:
        """The end of a plan's reason."""
        if self.files is not None:
            return "; Python reads the Parquet files"
        return f"; Spark reads the Parquet files: {self.reason}" if self.reason else ""


def chosen_scan(df: Any, wanted: str) -> ChosenScan:
    """Who reads the rows of ``df``.

    Args:
        df: the rows.
        wanted: value of ``hudi_fast.scan``.

    Raises:
        ConfigError: ``files``, and Spark has to read the rows.
        InvalidDataError: a file is gone or has changed since Spark listed it.
    """
    if wanted == "spark":
        return ChosenScan()
    try:
        if not reads_parquet(df):
            if wanted == "files":
                raise refused_scan("the rows are not read from Parquet files alone, or the session is Spark Connect")
            return ChosenScan()
        scan = file_scan(df)
        _check_samples(scan)
    except ScanRefusedError as error:
        reason = error.reason
    except (Py4JError, PySparkException) as error:
        reason = f"this Spark plans scans in another way ({str(error).splitlines()[0]})"
    else:
        return ChosenScan(scan)
    if wanted == "files":
        raise refused_scan(reason)
    return ChosenScan(reason=reason)


def refused_scan(reason: str) -> ConfigError:
    """The error of ``hudi_fast.scan=files`` where Spark has to read the rows."""
    return ConfigError(f"hudi_fast.scan=files cannot read the rows: {reason}. Use auto, so that Spark reads them.")


def rows_by_footers(scan: FileScan) -> int | None:
    """The number of rows before filters; None for many files."""
    if len(scan.files) > _FEW_FILES:
        return None

    def count(number: int) -> int:
        with scan.open(number) as file:
            return file.num_rows

    with ThreadPool(_THREADS) as pool:
        return sum(pool.map(count, range(len(scan.files))))


def rows_of_scan(scan: FileScan) -> pa.Table:
    """All rows; the caller bounds them."""

    def read(splits: Sequence[Split]) -> list[pa.RecordBatch]:
        return list(scan.read(splits))

    with ThreadPool(_THREADS) as pool:
        found = [batch for batches in pool.map(read, scan.tasks) for batch in batches]
    return pa.Table.from_batches(found, scan.schema)


def first_rows_of_scan(scan: FileScan, count: int) -> pa.Table | None:
    """The first rows, at most ``count``; None for a scan with filters, which may drop any number of rows."""
    if scan.filters:
        return None
    found, rows = [], 0
    for batch in scan.read([split for task in scan.tasks for split in task]):
        found.append(batch)
        rows += batch.num_rows
        if rows >= count:
            break
    return pa.Table.from_batches(found, scan.schema).slice(0, count)


def _check_samples(scan: FileScan) -> None:
    """Compare some files with the rules.

    Raises:
        InvalidDataError: a file is gone or has changed since Spark listed it.
        ScanRefusedError: Spark has to read the files.
    """
    count = len(scan.files)
    numbers = sorted({at * (count - 1) // (_SAMPLES - 1) for at in range(_SAMPLES)} if count else ())
    with ThreadPool(_THREADS) as pool:
        list(pool.map(partial(_check, scan), numbers))


def _check(scan: FileScan, number: int) -> None:
    file, found = scan.files[number], scan.stat(number)
    is_local = parts_of(file.uri)[0] == "file"
    if found is not None and found.size == file.size and found.modified_ms != file.modified_ms and not is_local:
        raise ScanRefusedError(f"its store gives {file.uri} another time than Hadoop")
    with scan.open(number) as reader:
        scan.leaves(number, reader)
