"""Tables whose newest commit gives timestamps another type than older files do, as a newer Apache Hudi leaves them.

Files are written with a first set of types; then :func:`retype` changes the schema in the newest commit, as a writer
does that knows the right types. :func:`moments` says what rows of such a table are.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

import hudi_fast as hf
from hudi_fast.formats.avro.schema import arrow_to_avro, without_meta

__all__ = [
    "MILLIS",
    "PAIRS",
    "asked",
    "column_name",
    "labelled_rows",
    "moments",
    "retype",
    "typed",
]

UTC_MS, UTC_US = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")
LOCAL_MS, LOCAL_US = pa.timestamp("ms"), pa.timestamp("us")
NAMES = {pa.int64(): "long", UTC_MS: "utc_ms", UTC_US: "utc_us", LOCAL_MS: "local_ms", LOCAL_US: "local_us"}

PAIRS = [(stored, current) for stored in NAMES for current in (UTC_MS, UTC_US, LOCAL_MS, LOCAL_US) if stored != current]
"""Types in a file, and in the table."""

MILLIS = 1_577_836_799_000
"""A number for any of the types: the last second of 2019 in milliseconds, a day of January 1970 in microseconds."""


def column_name(stored: pa.DataType, current: pa.DataType) -> str:
    """The column of a pair: ``utc_us_as_utc_ms``."""
    return f"{NAMES[stored]}_as_{NAMES[current]}"


def asked(kind: str, version: int, **more: Any) -> dict[str, Any]:
    """Options of a write; ``hoodie__x`` stands for ``hoodie.x``."""
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
        "hoodie.compact.inline": False,
        "hoodie.metadata.enable": False,
        "hudi_fast.threads": "1",
    }
    return given | {name.replace("__", "."): value for name, value in more.items()}


def labelled_rows(
    numbers: Iterable[int], pairs: Sequence[tuple[pa.DataType, pa.DataType]], place: int, ts: int, start: int = MILLIS
) -> pa.Table:
    """Rows with a column for each pair of types; row n holds the number ``start + 1000 n`` in all of them.

    Args:
        numbers: of the rows: ``k0``, ``k1`` ...
        pairs: types in files and in the table.
        place: 0 for the types in files, 1 for those of the table.
        ts: the ordering value.
        start: the number in row 0.
    """
    rows = list(numbers)
    stored = pa.array([start + 1000 * n if n % 5 != 4 else None for n in rows], pa.int64())
    columns: dict[str, Any] = {
        "id": [f"k{n}" for n in rows],
        "part": [f"p{n % 2}" for n in rows],
        "ts": pa.array([ts] * len(rows), pa.int64()),
    }
    for pair in pairs:
        values = stored.view(pair[place])
        ends = pa.array(range(len(rows) + 1), pa.int32())
        name = column_name(*pair)
        columns |= {
            name: values,
            f"{name}_struct": pa.StructArray.from_arrays([values, pa.array(rows)], names=["at", "n"]),
            f"{name}_list": pa.ListArray.from_arrays(ends, values),
            f"{name}_map": pa.MapArray.from_arrays(ends, pa.array([f"k{n}" for n in rows]), values),
        }
    return pa.table(columns)


def typed(rows: pa.Table) -> pa.Schema:
    """The schema of rows as a table has it: all columns nullable."""
    return pa.schema([field.with_nullable(True) for field in rows.schema])


def retype(path: Path, schema: pa.Schema) -> None:
    """Make ``schema`` the schema of the newest commit, and so of the table."""
    found = [*(path / ".hoodie").glob("*commit"), *(path / ".hoodie/timeline").glob("*commit")]
    newest = max((one for one in found if one.stat().st_size), key=lambda one: one.name)
    body, text = newest.read_bytes(), arrow_to_avro(without_meta(schema), "t_record", "hoodie.t")
    if body[:3] != b"Obj":
        record = json.loads(body)
        record["extraMetadata"]["schema"] = text
        newest.write_text(json.dumps(record))
        return
    reader = fastavro.reader(io.BytesIO(body))
    assert reader.writer_schema is not None
    (record,) = reader
    assert isinstance(record, dict)
    record["extraMetadata"]["schema"] = text
    sink = io.BytesIO()
    fastavro.writer(
        sink,
        reader.writer_schema,
        [record],
        metadata={name: value for name, value in reader.metadata.items() if not name.startswith("avro.")},
    )
    newest.write_bytes(sink.getvalue())


def moments(table: pa.Table, pairs: Iterable[tuple[pa.DataType, pa.DataType]]) -> dict[str, dict[str, Any]]:
    """The numbers of a table's rows, in the unit of its types, by key and column; nested ones under the plain name.

    Fails where a struct, list or map has another number than the plain column.
    """
    found: dict[str, dict[str, Any]] = {}
    for key in table["id"].to_pylist():
        found[key] = {}
    for pair in pairs:
        name = column_name(*pair)
        plain, struct, items, entries = (
            table[f"{name}{ending}"].combine_chunks() for ending in ("", "_struct", "_list", "_map")
        )
        numbers = plain.cast(pa.int64()).to_pylist()
        for inside in (struct.field("at"), items.flatten(), entries.items):
            assert inside.type == plain.type, name
            assert inside.cast(pa.int64()).to_pylist() == numbers, name
        for key, number in zip(table["id"].to_pylist(), numbers, strict=True):
            found[key][name] = number
    return found


def table_of(path: Path) -> hf.HudiTable:
    """The table, opened."""
    return hf.HudiTable.open(path)


def counts(pair: tuple[pa.DataType, pa.DataType], number: int | None) -> int | None:
    """What a number that a file stores under the first type of a pair means, in the unit of the second."""
    stored, current = pair
    if number is None or pa.types.is_integer(stored) or (stored, current) == (UTC_US, UTC_MS):
        return number
    micros = number * {"ms": 1000, "us": 1}[stored.unit]
    return micros // {"ms": 1000, "us": 1}[current.unit]


Rows = Mapping[str, Mapping[str, Any]]


def plain(rows: pa.Table) -> pa.Table:
    """Rows of :func:`labelled_rows` without the nested columns."""
    return rows.select([field.name for field in rows.schema if not pa.types.is_nested(field.type)])
