"""A real PostgreSQL followed through real Debezium and Kafka: the Hudi table has the rows of the database."""

from __future__ import annotations

import datetime
import json
import random
import time
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.servers.debezium import Debezium, start_debezium
from tests.servers.s3 import ServerError
from tests.support.jvm import FETCHED

SECONDS = 60.0
TYPES = {
    "id": ("bigint PRIMARY KEY", "long"),
    "name": ("text NOT NULL", "string"),
    "price": ("numeric(10,2)", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
    "paid": ("boolean NOT NULL", "boolean"),
    "made": ("timestamp", {"type": "long", "logicalType": "timestamp-micros"}),
    "weight": ("double precision", "double"),
    "day": ("date", {"type": "int", "logicalType": "date"}),
    "info": ("jsonb", "string"),
    "note": ("text", "string"),
}
"""Columns: their types in PostgreSQL, and in an Avro schema."""
AS_SENT = {
    "price": "price::text",
    "made": "(extract(epoch FROM made) * 1000000)::bigint",
    "day": "day - date '1970-01-01'",
    "info": "info::text",
}
"""SQL for what Debezium's JSON has of a column."""
NAMES = ("''", "'Zoë'", "'O''Neil'", "'2024-05-06'", "'7'", "'a\"b\\'")
IDENTITIES = ("FULL", "DEFAULT")
"""What a change tells about the row before it: all, or the key."""
MARKS = "0, -2"
"""Keys of a row in each partition of a topic, which the last statement of each step changes: a table with these changes
has those before them."""


@pytest.fixture(scope="module")
def debezium(kafka, postgres, tmp_path_factory) -> Iterator[Debezium]:
    """Debezium, which follows the tables that tests name."""
    folder = tmp_path_factory.mktemp("debezium")
    try:
        with start_debezium(FETCHED, folder, kafka, postgres) as server:
            yield server
    except ServerError as error:
        pytest.skip(str(error))


class Database:
    """A table of PostgreSQL, and statements that change it, which follow from a seed."""

    def __init__(self, postgres, name, seed, identity="FULL"):
        self.name, self._postgres, self._random, self._identity = name, postgres, random.Random(seed), identity
        columns = ", ".join(f"{column} {kind}" for column, (kind, _) in TYPES.items())
        postgres.execute(
            f"CREATE TABLE {name} ({columns}); ALTER TABLE {name} REPLICA IDENTITY {identity};"
            f"ALTER TABLE {name} ALTER note SET STORAGE EXTERNAL;"
        )
        self._keys = set(range(1, 9))
        rows = ", ".join(self._row(key) for key in self._keys)
        postgres.execute(f"INSERT INTO {name} VALUES {rows}, {self._row(0)}, {self._row(-2)}")

    def rows(self):
        """What it has, as Debezium's JSON has it."""
        columns = ", ".join(f"{AS_SENT.get(column, column)} AS {column}" for column in TYPES)
        return self._postgres.select(f"SELECT {columns} FROM {self.name} ORDER BY id")

    def change(self, mark, statements=12):
        """Execute statements, some of them together in a transaction that may be rolled back."""
        script, step = [], self._random.choice((1, 2, 5))
        for _ in range(0, statements, step):
            before = set(self._keys)
            part = [self._statement() for _ in range(step)]
            if self._random.random() < 0.2:
                self._keys = before
                part.append("ROLLBACK")
            else:
                part.append("COMMIT")
            script += ["BEGIN", *part]
        script.append(f"UPDATE {self.name} SET name = '{mark}' WHERE id IN ({MARKS})")
        self._postgres.execute(";\n".join(script))

    def _statement(self):
        choose, table = self._random.choice, self.name
        new = self._random.randrange(1, 40)
        if not self._keys or self._random.random() < 0.25:
            self._keys.add(new)
            assigned = ", ".join(f"{column} = excluded.{column}" for column in TYPES)
            return f"INSERT INTO {table} VALUES {self._row(new)} ON CONFLICT (id) DO UPDATE SET {assigned}"
        key = choose(sorted(self._keys))
        kind = choose(["update", "update", "key", "delete", "renew"])
        if kind == "key" and new not in self._keys:
            self._keys ^= {key, new}
            # Debezium does not have a large value that a change leaves as it is, unless the identity is FULL.
            note = "" if self._identity == "FULL" else ", note = 'moved'"
            return f"UPDATE {table} SET id = {new}{note} WHERE id = {key}"
        if kind == "delete":
            gone = {key, choose(sorted(self._keys))}
            self._keys -= gone
            return f"DELETE FROM {table} WHERE id IN ({', '.join(map(str, gone))})"
        if kind == "renew":
            return f"DELETE FROM {table} WHERE id = {key}; INSERT INTO {table} VALUES {self._row(key)}"
        values = dict(zip(TYPES, self._values(key), strict=True))
        changed = self._random.sample([column for column in TYPES if column != "id"], 3)
        assigned = ", ".join(f"{column} = {values[column]}" for column in changed)
        return f"UPDATE {table} SET {assigned} WHERE id IN ({key}, {choose(sorted(self._keys))})"

    def _row(self, key):
        return f"({', '.join(self._values(key))})"

    def _values(self, key):
        number, maybe = self._random.randrange, self._random.random
        values = [
            self._random.choice(NAMES),
            f"{number(-(10**10) + 1, 10**10) / 100:.2f}",
            self._random.choice(("true", "false")),
            f"timestamp '{number(1900, 2100)}-0{number(1, 10)}-1{number(10)} 0{number(10)}:00:00.{number(10**6):06}'",
            repr(self._random.choice((0.0, 1.0, -2.5, 1e20, self._random.random()))),
            f"date '{number(1900, 2100)}-0{number(1, 10)}-1{number(10)}'",
            f"""'{json.dumps({"b": [number(9), None], "a": {"ü": "x"}}, ensure_ascii=False)}'""",
            self._random.choice((f"repeat('{number(10)}', 3000)", "'short'")),
        ]
        required = {0, 2}
        filled = [one if at in required or maybe() < 0.8 else "NULL" for at, one in enumerate(values)]
        return [str(key), *filled]


def schema_file(folder):
    """The option of a file with an Avro schema of the changes, as docs/streamer.md has one."""

    def fields(kinds, **required):
        optional = [{"name": name, "type": ["null", kind], "default": None} for name, kind in kinds.items()]
        return [{"name": name, "type": kind} for name, kind in required.items()] + optional

    kinds = {name: kind for name, (_, kind) in TYPES.items() if name != "id"}
    row = {"type": "record", "name": "Row", "fields": fields(kinds, id="long")}
    place = dict.fromkeys(("ts_ms", "txId", "lsn", "xmin"), "long")
    source = {"type": "record", "name": "Source", "fields": fields(place, name="string", schema="string")}
    event = fields({"before": row, "after": "Row", "ts_ms": "long"}, source=source, op="string")
    (folder / "rows.avsc").write_text(json.dumps({"type": "record", "name": "Envelope", "fields": event}))
    return {"hoodie.streamer.schemaprovider.source.schema.file": str(folder / "rows.avsc")}


class Follower:
    """A Hudi table, fed from the topic of a table."""

    def __init__(self, kafka, topic, path, limit, kind, version, more=None):
        self._path = path
        given = {
            "bootstrap.servers": kafka.servers,
            "auto.offset.reset": "earliest",
            "hoodie.streamer.source.kafka.topic": topic,
            "hoodie.streamer.source.kafka.value.deserializer.class": "StringDeserializer",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.write.table.version": version,
            **(more or {}),
        }
        self._stream = lambda: hf.Streamer(
            given,
            source_class="PostgresDebeziumSource",
            target_base_path=str(path),
            table_type=kind,
            source_limit=limit,
        )

    def catch_up(self, mark):
        """Turns until the table has the changes of the database up to a mark."""
        streamer, deadline = self._stream(), time.monotonic() + SECONDS
        try:
            while self._marks() != [mark, mark]:
                assert time.monotonic() < deadline, f"mark {mark} is not there; the table has {self._marks()}"
                if not streamer.turn().instant:
                    time.sleep(0.05)
        finally:
            streamer.close()

    def rows(self):
        """What the table has, as Debezium's JSON has it."""
        rows = hf.read(self._path).sort_by("id").to_pylist()
        return [{name: plain(row.get(name)) for name in TYPES} for row in rows]  # a column that was never filled

    def _marks(self):
        if not hf.is_table(self._path):
            return []
        return hf.read(self._path, columns=["id", "name"], filter=f"id IN ({MARKS})")["name"].to_pylist()


def plain(value):
    """A value of a typed column as Debezium's JSON has it."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime.datetime):
        since = value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
        return since // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days
    return value


@pytest.mark.parametrize("seed", [1, *(pytest.param(one, marks=pytest.mark.long) for one in range(2, 8))])
def test_tables_of_any_kind_have_the_rows_of_the_database(kafka, postgres, debezium, tmp_path, seed):
    database = Database(postgres, f"any_{seed}", seed, IDENTITIES[seed % 2])
    topic = debezium.follow(database.name, value_converter_schemas_enable=str(seed % 3 == 0).lower())
    typed = schema_file(tmp_path)
    tables = [
        Follower(kafka, topic, tmp_path / "a", 9, "MERGE_ON_READ", "9"),
        Follower(kafka, topic, tmp_path / "b", 25, "COPY_ON_WRITE", "9", typed),
        Follower(kafka, topic, tmp_path / "c", 60, "MERGE_ON_READ", "6", typed),
    ]
    for mark in ("one", "two", "three"):
        database.change(mark)
        for table in tables:
            table.catch_up(mark)
            assert table.rows() == database.rows()


@pytest.mark.parametrize("seed", [21, *(pytest.param(one, marks=pytest.mark.long) for one in (22, 23))])
def test_changes_may_be_avro_with_a_schema_registry(kafka, postgres, debezium, schema_registry, tmp_path, seed):
    database = Database(postgres, f"avro_{seed}", seed, IDENTITIES[seed % 2])
    topic = debezium.follow(database.name, schema_registry)
    avro = {
        "schema.registry.url": schema_registry,
        "hoodie.streamer.source.kafka.value.deserializer.class": "KafkaAvroDeserializer",
    }
    table = Follower(kafka, topic, tmp_path / "a", 20, "MERGE_ON_READ", "9", avro)
    for mark in ("one", "two"):
        database.change(mark)
        table.catch_up(mark)
        assert table.rows() == database.rows()
    types = hf.read(tmp_path / "a").schema
    assert [types.field(name).type for name in ("made", "day")] == [pa.int64(), pa.int32()]


@pytest.mark.parametrize("seed", [11, *(pytest.param(one, marks=pytest.mark.long) for one in (12, 13))])
def test_debezium_may_die_and_rows_may_move_between_partitions(kafka, postgres, debezium, tmp_path, seed):
    database = Database(postgres, f"moved_{seed}", seed, IDENTITIES[seed % 2])
    topic = debezium.follow(database.name)
    parts = {"hoodie.datasource.write.partitionpath.field": "paid", "hoodie.index.type": "GLOBAL_SIMPLE"}
    tables = [
        Follower(kafka, topic, tmp_path / "a", 40, "COPY_ON_WRITE", "9", parts),
        Follower(kafka, topic, tmp_path / "b", 40, "MERGE_ON_READ", "9", parts),
    ]
    for mark in ("one", "two"):
        place = postgres.place()
        database.change(mark)
        if mark != "one":  # killed before it has stored the end of its snapshot, it takes another and misses deletes
            debezium.stop()
            debezium.start()
            assert debezium.follow(database.name) == topic
        for table in tables:
            table.catch_up(mark)
            assert table.rows() == database.rows()
        debezium.wait_until_stored(database.name, place)
