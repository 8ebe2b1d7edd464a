"""Record keys and partition paths: ours are Hudi's, for every key generator.

One table per case, written by both in turns, each changing rows that the other wrote: a key or path that came out
differently would make a second row of the same id.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.interop.sides import META, Sides, after_upsert, data_columns
from tests.support.rows import assert_same_rows

W = "hoodie.datasource.write."
TIME = "hoodie.keygen.timebased."
HIVE = {f"{W}hive_style_partitioning": True}
ENCODED = {f"{W}partitionpath.urlencode": True}
MOR = {f"{W}table.type": "MERGE_ON_READ"}
IN_UTC = {f"{TIME}timezone": "UTC"}


@dataclass(frozen=True)
class Case:
    """A way to make keys.

    Attributes:
        keys: record key fields.
        partitions: partition path fields.
        more: other options; ``generator`` names Hudi's class without package.
        first: key and path of the row with id 0, as (record key, partition path); None without meta columns.
        from_path: columns that Hudi reads from the path, or as text, rather than as they were written.
    """

    keys: str
    partitions: str
    first: tuple[str, str] | None
    generator: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)
    from_path: Sequence[str] = ()

    def options(self, version: int) -> dict[str, Any]:
        generator = {f"{W}keygenerator.class": f"org.apache.hudi.keygen.{self.generator}"} if self.generator else {}
        return {
            "hoodie.table.name": "keyed",
            "hoodie.write.table.version": version,
            f"{W}recordkey.field": self.keys,
            f"{W}partitionpath.field": self.partitions,
            f"{W}precombine.field": "ts",
            **generator,
            **self.more,
        }


def time_based(kind: str, out: str, **more: str) -> dict[str, str]:
    names = {"unit": "timestamp.scalar.time.unit", "given": "input.dateformat", "zone": "timezone"}
    return {
        f"{TIME}timestamp.type": kind,
        f"{TIME}output.dateformat": out,
        **{TIME + names[name]: value for name, value in more.items()},
    }


LISTED = "id:0,name:n,0:x,third:0.0,dec:0.00,day:2024-01-01,big:-1.0E7"
BY_TIME = "TimestampBasedKeyGenerator"
CASES = {
    "simple, hive style, encoded": Case("id", "city", ("0", "city=a%2Fb c"), more={**HIVE, **ENCODED}),
    "decimal key, date path": Case("dec", "day", ("0.00", "2024-01-01")),
    "double key, boolean path": Case("big", "flag", ("-1.0E7", "true")),
    "timestamp in the path": Case("id", "at", ("0", "1705319100250000"), from_path=["at"]),
    "keys with nulls and empty texts": Case(
        "at,opt,id", "flat,day", ("at:1705319100250000,opt:__null__,id:0", "flat=c0/day=2024-01-01"), more=HIVE
    ),
    "many keys, default partitions": Case(
        "id,name,third,dec,day,big",
        "city,opt",
        (LISTED, "a%2Fb c/__HIVE_DEFAULT_PARTITION__"),
        more=ENCODED,
        from_path=["opt"],
    ),
    "complex with one key": Case(
        "id",
        "flat,day",
        ("id:0", "c0/2024-01-01"),
        "ComplexKeyGenerator",
        {"hoodie.write.complex.keygen.validation.enable": False},
    ),
    "nested fields": Case("nest.k", "nest.c", ("0", "z0")),
    "nested fields, hive style": Case("nest.k", "nest.c", ("0", "nest.c=z0"), more={**HIVE, **MOR}),
    "nested and plain fields": Case("nest.k,id", "nest.c,flat", ("nest.k:0,id:0", "nest.c=z0/flat=c0"), more=HIVE),
    "unix time": Case(
        "id",
        "unix",
        ("0", "2024/01/15"),
        BY_TIME,
        time_based("UNIX_TIMESTAMP", "yyyy/MM/dd", zone="GMT+8:00"),
        ["unix"],
    ),
    "milliseconds, hive style, encoded": Case(
        "id",
        "ms",
        ("0", "ms=2024-01-15 06%3A26"),
        BY_TIME,
        {
            **time_based("EPOCHMILLISECONDS", "yyyy-MM-dd HH:mm"),
            f"{TIME}output.timezone": "America/New_York",
            **HIVE,
            **ENCODED,
        },
        ["ms"],
    ),
    "text times": Case(
        "id",
        "text",
        ("0", "20240110"),
        BY_TIME,
        time_based("DATE_STRING", "yyyyMMdd", given="yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd'T'HH:mm:ss.SSSZ"),
        ["text"],
    ),
    "epoch days": Case(
        "id",
        "day",
        ("0", "2024-01-01"),
        BY_TIME,
        {**time_based("SCALAR", "yyyy-MM-dd", unit="DAYS"), **IN_UTC},
        ["day"],
    ),
    "custom, two kinds": Case(
        "id",
        "ms:TIMESTAMP,flat:SIMPLE",
        ("0", "20240115/c0"),
        "CustomKeyGenerator",
        {**time_based("EPOCHMILLISECONDS", "yyyyMMdd"), **IN_UTC},
        ["ms"],
    ),
    "custom, two keys": Case("id,name", "flat:simple", ("id:0,name:n,0:x", "flat=c0"), "CustomKeyGenerator", HIVE),
    "not partitioned": Case("name,id", "", ("name:n,0:x,id:0", "")),
    "global delete": Case("id", "flat", ("id:0", ""), "GlobalDeleteKeyGenerator"),
    "no meta columns": Case("id,name", "flat,day", None, more={"hoodie.populate.meta.fields": False}),
    "partition columns in the path only": Case("id", "flat", ("0", "c0"), more={f"{W}drop.partition.columns": True}),
    "dates with slashes": Case(
        "id", "iso", ("0", "2024/01/01"), more={f"{W}slash.separated.date.partitioning": True}, from_path=["iso"]
    ),
}
OLD = ("complex with one key", "unix time", "text times", "custom, two kinds", "no meta columns")
"""What differs between versions, in how a table stores or does it."""

RUNS = [
    *(("hudi_12", 9, name) for name in CASES),
    *(("hudi_12", 8, name) for name in OLD[:1]),
    *(("hudi_12", 6, name) for name in (OLD[3], "partition columns in the path only")),
    *(("hudi_015", 6, name) for name in (*OLD, "nested fields, hive style")),
    ("hudi_12", 6, "nested fields, hive style"),
    ("hudi_12", 8, "nested and plain fields"),
]
BY_DEFAULT = {
    ("hudi_12", 9, "keys with nulls and empty texts"),
    ("hudi_12", 9, "many keys, default partitions"),
    ("hudi_12", 9, "milliseconds, hive style, encoded"),
    ("hudi_12", 9, "custom, two kinds"),
    ("hudi_12", 9, "global delete"),
    ("hudi_12", 9, "no meta columns"),
    ("hudi_12", 9, "partition columns in the path only"),
    ("hudi_12", 9, "dates with slashes"),
    ("hudi_12", 9, "nested fields, hive style"),
    ("hudi_12", 8, "nested and plain fields"),
    ("hudi_12", 8, "complex with one key"),
    ("hudi_015", 6, "unix time"),
}
"""The others in the tier ``long``."""


def keyed(ids: range, ts: int) -> pa.Table:
    moment = dt.datetime(2024, 1, 15, 11, 45, 0, 250_000, tzinfo=dt.UTC)
    days = [dt.date(2024, 1, i % 3 + 1) for i in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "name": [f"n,{i}:x" for i in ids],
            "city": pa.array([["a/b c", "x=1%", "ü€", None, 'T:1"#'][i % 5] for i in ids]),
            "flat": [f"c{i % 2}" for i in ids],
            "opt": pa.array([[None, "", "v"][i % 3] for i in ids]),
            "unix": pa.array([1_705_318_000 + i * 86_400 for i in ids], pa.int64()),
            "ms": pa.array([1_705_318_000_123 + i * 8_640_000 for i in ids], pa.int64()),
            "day": pa.array(days),
            "iso": [day.isoformat() for day in days],
            "at": pa.array([moment + dt.timedelta(hours=i % 3) for i in ids], pa.timestamp("us", "UTC")),
            "text": [f"2024-01-1{i % 3}T11:45:00.000Z" for i in ids],
            "dec": pa.array([Decimal(i).scaleb(-2) for i in ids], pa.decimal128(10, 2)),
            "big": pa.array([i * 1.5e6 - 1e7 for i in ids], pa.float64()),
            "third": pa.array([i / 3 for i in ids], pa.float32()),
            "flag": pa.array([i % 2 == 0 for i in ids]),
            "nest": pa.array(
                [{"k": i, "c": f"z{i % 2}"} for i in ids], pa.struct([("k", pa.int64()), ("c", pa.string())])
            ),
        }
    )


@pytest.mark.smoke("hudi_12-9-custom,_two_kinds")
@pytest.mark.parametrize(
    ("peer", "version", "name"),
    [pytest.param(*one, marks=() if one in BY_DEFAULT else pytest.mark.long) for one in RUNS],
    ids=lambda one: str(one).replace(" ", "_"),
)
def test_each_side_finds_the_rows_of_the_other(
    peer: str, version: int, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    case = CASES[name]
    sides = Sides(request.getfixturevalue(peer), tmp_path / "t", case.options(version), plainly=True)
    we_begin = list(CASES).index(name) % 2 == 0 and peer != "hudi_015"
    writers = (sides.we_write, sides.hudi_writes) if we_begin else (sides.hudi_writes, sides.we_write)
    rows = keyed(range(12), 1)
    writers[0](rows)
    for ids, ts, write in ((range(4, 16), 2, writers[1]), (range(2, 18), 3, writers[0])):
        new = keyed(ids, ts)
        write(new)
        rows = after_upsert(rows, new)
    ours, theirs = sides.table.to_arrow(), sides.hudi.read(sides.path)
    unseen = [] if case.first else META
    assert_same_rows(ours, theirs, ignore=[*case.from_path, *unseen], key=["id"])
    assert_same_rows(data_columns(ours), rows, key=["id"])
    if case.first and (name, peer) != ("complex with one key", "hudi_015"):
        row = ours.filter(pa.compute.equal(ours["id"], 0)).to_pylist()[0]
        assert (row["_hoodie_record_key"], row["_hoodie_partition_path"]) == case.first


def test_made_up_keys_of_both_sides_stay_distinct(hudi_12: Any, tmp_path: Path) -> None:
    options = {
        "hoodie.table.name": "keyless",
        "hoodie.write.table.version": 9,
        f"{W}partitionpath.field": "flat",
        f"{W}operation": "insert",
    }
    sides = Sides(hudi_12, tmp_path / "t", options, plainly=True)
    parts = [keyed(range(5 * number, 5 * number + 5), 1) for number in range(4)]
    for part, write in zip(parts, (sides.we_write, sides.hudi_writes) * 2, strict=True):
        write(part, "insert")
    found = sides.agree(pa.concat_tables(parts))
    assert len(set(found["_hoodie_record_key"].to_pylist())) == 20
