"""Decode and encode Avro data blocks, for flat and nested columns. One thread.

Times are for ROWS rows. ``track_*`` returns megabytes of block content per second, or the speed-up over fastavro for
the same rows. fastavro decodes and encodes one record at a time, because a block frames each record.
"""

from __future__ import annotations

import datetime
import decimal
import io
import json
import random
import time
import uuid

import fastavro
import numpy as np
import pyarrow as pa

from hudi_fast.formats.avro.rows import AvroDecoder, AvroEncoder, block_content_head
from hudi_fast.formats.avro.schema import META_FIELDS, arrow_to_avro

ROWS = 50_000
FASTAVRO_ROWS = 4_000
FLAT = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in META_FIELDS),
        *(pa.field(name, pa.string()) for name in ("uuid", "rider", "driver")),
        *(pa.field(name, pa.int64()) for name in ("ts", "trip", "distance")),
        *(pa.field(name, pa.float64()) for name in ("lat", "lon", "fare")),
        pa.field("day", pa.date32()),
        pa.field("amount", pa.decimal128(10, 2)),
        pa.field("shared", pa.bool_()),
    ]
)
NESTED = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("tags", pa.list_(pa.field("element", pa.string()))),
        pa.field("counts", pa.list_(pa.field("element", pa.int64()))),
        pa.field("scores", pa.map_(pa.string(), pa.field("value", pa.float64()))),
        pa.field("place", pa.struct([pa.field("x", pa.float64()), pa.field("name", pa.string())])),
    ]
)


def flat_row(number, rng):
    key = str(uuid.UUID(int=rng.getrandbits(128)))
    return {
        "_hoodie_commit_time": "20240101120000000",
        "_hoodie_commit_seqno": f"20240101120000000_{number % 20}_{number}",
        "_hoodie_record_key": key,
        "_hoodie_partition_path": f"2024/01/{number % 28 + 1:02d}",
        "_hoodie_file_name": "0b3f8d6e-0000-4f1e-9c0e-1d8b8f5f2f8a-0_3-12-34_20240101120000000.parquet",
        "uuid": key,
        "rider": f"rider-{rng.randrange(1000)}",
        "driver": f"driver-{rng.randrange(777)}" if rng.random() < 0.9 else None,
        "ts": 1_700_000_000_000 + 37 * number,
        "trip": rng.getrandbits(40),
        "distance": rng.randrange(1000),
        "lat": rng.random(),
        "lon": rng.random(),
        "fare": 100 * rng.random(),
        "day": datetime.date(2024, 1, 1) + datetime.timedelta(number % 300),
        "amount": decimal.Decimal(rng.randrange(10**8)).scaleb(-2),
        "shared": rng.random() < 0.5,
    }


def nested_row(number, rng):
    return {
        "id": number,
        "tags": [f"tag{rng.randrange(50)}" for _ in range(rng.randrange(5))],
        "counts": [rng.randrange(10**6) for _ in range(rng.randrange(20))],
        "scores": {f"k{each}": rng.random() for each in range(rng.randrange(4))},
        "place": {"x": rng.random(), "name": f"place {rng.randrange(100)}"} if rng.random() < 0.8 else None,
    }


SHAPES = {"flat": (FLAT, flat_row), "nested": (NESTED, nested_row)}


def as_arrow(schema, rows):
    columns = []
    for field in schema:
        values = [row[field.name] for row in rows]
        if pa.types.is_map(field.type):
            values = [list(value.items()) for value in values]
        columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def best_seconds(work, times=5):
    """Least CPU time of this thread over several runs; excludes other processes."""
    took = []
    for _ in range(times):
        before = time.thread_time()
        work()
        took.append(time.thread_time() - before)
    return min(took)


class Avro:
    params = tuple(SHAPES)
    param_names = ("columns",)

    def setup(self, columns):
        schema, make_row = SHAPES[columns]
        rng = random.Random(1)
        self.rows = [make_row(number, rng) for number in range(ROWS)]
        self.text = arrow_to_avro(schema, "record", "hoodie.table")
        self.encoder = AvroEncoder.compile(schema, self.text)
        self.decoder = AvroDecoder.compile(self.text, schema, "the benchmark")
        first = AvroDecoder.compile(self.text, pa.schema([schema.field(2)]), "the benchmark")
        self.one_column = first
        self.batch = as_arrow(schema, self.rows)
        records, self.bounds = self.encoder.encode_records(self.batch)
        self.content = np.concatenate((np.frombuffer(block_content_head(ROWS), np.uint8), records))
        assert self.time_decode(columns) == ROWS

    def time_decode(self, columns):
        return sum(batch.num_rows for batch in self.decoder.decode_block(self.content, None, 0))

    def time_decode_one_column(self, columns):
        return sum(batch.num_rows for batch in self.one_column.decode_block(self.content, None, 0))

    def time_encode(self, columns):
        self.encoder.encode_records(self.batch)

    def track_decode_megabytes_per_second(self, columns):
        return len(self.content) / best_seconds(lambda: self.time_decode(columns)) / 1e6

    def track_encode_megabytes_per_second(self, columns):
        return len(self.content) / best_seconds(lambda: self.time_encode(columns)) / 1e6

    def track_decode_times_fastavro(self, columns):
        schema = fastavro.parse_schema(json.loads(self.text))
        records = [
            self.content[8 + a + 4 : 8 + b].tobytes() for a, b in zip(self.bounds, self.bounds[1:], strict=False)
        ]

        def rival():
            for record in records[:FASTAVRO_ROWS]:
                fastavro.schemaless_reader(io.BytesIO(record), schema, None)

        return best_seconds(rival, 2) * ROWS / FASTAVRO_ROWS / best_seconds(lambda: self.time_decode(columns))

    def track_encode_times_fastavro(self, columns):
        schema = fastavro.parse_schema(json.loads(self.text))

        def rival():
            for row in self.rows[:FASTAVRO_ROWS]:
                fastavro.schemaless_writer(io.BytesIO(), schema, row)

        return best_seconds(rival, 2) * ROWS / FASTAVRO_ROWS / best_seconds(lambda: self.time_encode(columns))

    def peakmem_decode(self, columns):
        self.time_decode(columns)
