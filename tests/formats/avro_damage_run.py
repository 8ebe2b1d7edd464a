"""Decode damaged records that end where readable memory ends; run by a test in a process of its own.

A kernel that reads one byte too far ends the process; with NUMBA_BOUNDSCHECK=1 so does an index outside its array.
Prints how many contents gave rows and how many an error of their own.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import random

import numpy as np
import pyarrow as pa

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.rows import AvroDecoder
from hudi_fast.formats.avro.types import arrow_type, parse_record
from tests.formats.avro_examples import record_of
from tests.naive import avro_rows as naive

DECIMAL = {"logicalType": "decimal", "precision": 20, "scale": 3}
POINT = {
    "type": "record",
    "name": "p",
    "fields": [{"name": "x", "type": ["null", "int"]}, {"name": "y", "type": "string"}],
}
SCHEMA = record_of(
    ("a", ["null", "string"]),
    ("b", ["long", "null"]),
    ("c", {"type": "array", "items": ["null", "int"]}),
    ("d", ["null", {"type": "fixed", "name": "f", "size": 9, **DECIMAL}]),
    ("e", {"type": "bytes", **DECIMAL}),
    ("g", ["null", {"type": "map", "values": {"type": "array", "items": "string"}}]),
    ("h", {"type": "enum", "name": "e", "symbols": ["A", "B"]}),
    ("i", ["null", POINT]),
    ("j", ["null", "boolean"]),
    ("k", "double"),
    ("u", ["int", "null", {"type": "record", "name": "w", "fields": [{"name": "v", "type": "string"}]}, "string"]),
    ("l", "string"),
)
ROWS = [
    {"a": "x" * 40, "b": -(2**62), "c": [1, None, -300], "d": -(10**19), "e": 10**19, "g": {"k": ["v", "w" * 70]},
     "h": "B", "i": {"x": 7, "y": "yy"}, "j": True, "k": 1.5,
     "u": {"int": None, "w": {"v": "z" * 20}, "string": None}, "l": "é" * 30},
    {"a": None, "b": None, "c": [], "d": None, "e": 0, "g": None, "h": "A", "i": None, "j": None, "k": 0.0,
     "u": None, "l": ""},
]  # fmt: skip


class GuardedPages:
    """Memory whose end is followed by a page that nobody may touch."""

    def __init__(self, pages):
        size = mmap.PAGESIZE * (pages + 1)
        self.memory = mmap.mmap(-1, size)
        self.size = size - mmap.PAGESIZE
        self.bytes = np.frombuffer(self.memory, np.uint8)
        last = ctypes.c_void_p(self.bytes.ctypes.data + self.size)
        if ctypes.CDLL(None, use_errno=True).mprotect(last, mmap.PAGESIZE, 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")

    def at_the_end(self, content):
        view = self.bytes[self.size - len(content) : self.size]
        view[:] = np.frombuffer(content, np.uint8)
        return view


def damaged(content, rng):
    content = bytearray(content)
    for _ in range(rng.randrange(4)):
        content[rng.randrange(len(content))] = rng.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    if rng.random() < 0.3:
        del content[rng.randrange(8, len(content)) :]
    return bytes(content)


def main(times):
    text = json.dumps(SCHEMA)
    full = pa.schema(list(arrow_type(parse_record(text, "here"), "", "here")))
    decoders = [AvroDecoder.compile(text, full, "here")]
    decoders += [AvroDecoder.compile(text, pa.schema([full.field(name)]), "here") for name in ("c", "g", "u", "l")]
    content = naive.block([naive.encode(SCHEMA, row) for row in ROWS])
    pages, rng, good, bad = GuardedPages(4), random.Random(11), 0, 0
    for turn in range(times):
        view = pages.at_the_end(content if turn < len(decoders) else damaged(content, rng))
        try:
            rows = sum(batch.num_rows for batch in decoders[turn % len(decoders)].decode_block(view, "a.log", 0))
        except CorruptTableError:
            bad += 1
        else:
            good += rows <= len(ROWS)
    print(good, bad)


if __name__ == "__main__":
    main(4000)
