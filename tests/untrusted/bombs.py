"""Small files that promise, or become, far more than they are; each is refused with an error that names its file."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from struct import pack
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties
from hudi_fast.formats.avro.rows import AvroDecoder
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.hfile.reader import read_hfile
from hudi_fast.formats.hfile.writer import encode_hfile
from hudi_fast.formats.log.blocks import MAGIC, BlockType, HeaderKey, encode_block, scan_log_blocks
from hudi_fast.formats.log.delete_block import decode_delete_block, decode_positions
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.formats.parquet.thrift_compact import (
    I64,
    LIST,
    STRUCT,
    ThriftReader,
    fields_of,
    integer,
    struct,
    struct_list,
    structs,
)
from hudi_fast.index.buckets import parse_hashing
from hudi_fast.schema.internal import parse_versions
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.lsm_archive import read_manifest
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.plans import decode_clean_plan

__all__ = ["BOMBS", "NAMED"]

FILE = "a.file"
FAR, NEVER = "99991231235959999", "9" * 17
NAMED = (FILE, FAR, NEVER)
"""What messages name: the file, or the instant whose file is meant."""

NESTED = b'{"a":' * 200_000 + b"1" + b"}" * 200_000


# ---- parts


def varint(value: int) -> bytes:
    """Avro's number."""
    value, out = value << 1 ^ value >> 63, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def container(schema: Any, body: bytes, count: int = 1, codec: bytes = b"null") -> bytes:
    """An Avro container file with one block."""
    text, marker = json.dumps(schema).encode(), b"m" * 16
    pairs = {b"avro.schema": text, b"avro.codec": codec}
    head = varint(2) + b"".join(varint(len(part)) + part for pair in pairs.items() for part in pair) + varint(0)
    return b"Obj\x01" + head + marker + varint(count) + varint(len(body)) + body + marker


def record(*fields: tuple[str, Any], name: str = "r") -> dict[str, Any]:
    """A record's schema."""
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields]}


def laughs(levels: int) -> dict[str, Any]:
    """A schema of few bytes whose type has 2 to the power of ``levels`` parts."""
    kind: Any = "int"
    for level in range(levels):
        kind = record(("a", kind), ("b", kind if isinstance(kind, str) else kind["name"]), name=f"r{level}")
    return dict(kind)


def chain(levels: int) -> dict[str, Any]:
    """A schema whose records refer to the one before: flat as JSON, deep as a type."""
    fields: list[tuple[str, Any]] = [("f0", record(("x", "int"), name="r0"))]
    fields += [(f"f{at}", record(("x", f"r{at - 1}"), name=f"r{at}")) for at in range(1, levels)]
    return record(*fields, name="whole")


def deep(levels: int) -> str:
    """An array of arrays of arrays ..."""
    kind = '{"type":"array","items":' * levels + '"int"' + "}" * levels
    return f'{{"type":"record","name":"r","fields":[{{"name":"a","type":{kind}}}]}}'


def block(schema: Any, rows: list[bytes], wanted: pa.Schema | None = None, reader_avro: str | None = None) -> None:
    """Decode an Avro data block."""
    text = json.dumps(schema)
    content = pack(">ii", 3, len(rows)) + b"".join(pack(">i", len(row)) + row for row in rows)
    columns = avro_to_arrow(text, FILE) if wanted is None else wanted
    decoder = AvroDecoder.compile(text, columns, FILE, reader_avro=reader_avro)
    for _ in decoder.decode_block(pa.py_buffer(content), FILE, 0):
        pass


def stored(folder: Path, content: bytes, path: str = FILE) -> Storage:
    """A storage with one file."""
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return Storage(folder)


def table(folder: Path) -> Path:
    """A small table."""
    rows = pa.table({"id": ["a", "b"], "part": ["p0", "p1"], "ts": [1, 2]})
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id", "hudi_fast.threads": "1"}
    options |= {"hoodie.datasource.write.partitionpath.field": "part", "hoodie.datasource.write.precombine.field": "ts"}
    hf.write(rows, folder / "t", {**options, "hoodie.metadata.enable": "false", "hoodie.index.bloom.num_entries": "10"})
    return folder / "t"


# ---- files


def _parquet_of_rows(folder: Path, count: int) -> None:
    """A Parquet file of three rows whose footer tells of more."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": [1, 2, 3], "s": ["a", "a", "a"]}), sink)
    raw = sink.getvalue().to_pybytes()
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")

    def told(_: ThriftReader) -> bytes:
        _.integer()
        return integer(count)[1]

    def chunk(reader: ThriftReader) -> bytes:
        return struct(fields_of(reader, {3: (STRUCT, lambda one: struct(fields_of(one, {5: (I64, told)})))}))

    def group(reader: ThriftReader) -> bytes:
        columns = LIST, lambda one: struct_list(structs(one, {0: chunk, 1: chunk}, "column"))
        return struct(fields_of(reader, {1: columns, 3: (I64, told)}))

    groups = LIST, lambda one: struct_list(structs(one, {0: group}, "row group"))
    footer = struct(fields_of(ThriftReader(raw[start:-8], None), {3: (I64, told), 4: groups}))
    storage = stored(folder, raw[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with open_base_file(storage, FILE) as reader:
        reader.read(["n", "s"])


def _read_manifest_of(folder: Path, content: bytes) -> None:
    stored(folder, content, "history/manifest_1")
    read_manifest(stored(folder, b"1", "history/_version_"), "history")


def _log(folder: Path, content: bytes) -> None:
    storage = stored(folder, content)
    found = list(scan_log_blocks(storage, FILE))
    if all(one.kind is BlockType.CORRUPT for one in found):
        raise hf.CorruptTableError("only damaged blocks, which readers skip", FILE)


def _hfile_of_zeros() -> bytes:
    keys, values = pa.array(["k"]), pa.array([bytes(150 << 20)], pa.binary())
    return b"".join(bytes(part) for part in encode_hfile(keys, values, ""))


def _full_filter() -> str:
    bits = 64
    row = pack(">iibi", -1, 2**31 - 1, 1, bits) + b"\xff" * (bits // 8)
    return base64.b64encode(row).decode()


def _positions() -> str:
    """Positions 0 to 2^31 as runs of whole containers."""
    containers = 32_768
    flags, keys = b"\xff" * (containers // 8), range(containers)
    head = pack("<HH", 0x303B, containers - 1) + flags
    described = b"".join(pack("<HH", key, 0xFFFF) for key in keys)
    runs = pack("<HHH", 1, 0, 0xFFFF) * containers
    return base64.b64encode(pack("<QI", 1, 0) + head + described + bytes(4 * containers) + runs).decode()


def _linked(folder: Path, link: Callable[[Path], None]) -> None:
    path = table(folder)
    link(path)
    found = hf.HudiTable.open(path)
    found.to_arrow()
    found.services.validate()


def _around(path: Path) -> None:
    """Two links of each folder to itself: a walk that follows them does not end."""
    for name in ("a", "b"):
        (path / name).symlink_to(path, target_is_directory=True)


def _away(path: Path) -> None:
    outside = path.parent / "outside"
    (path / "p0").rename(outside)
    (path / "p0").symlink_to(outside, target_is_directory=True)


def _file_away(path: Path) -> None:
    (file,) = (path / "p0").glob("*.parquet")
    file.rename(path.parent / "outside")
    file.symlink_to(path.parent / "outside")


def _pipe(path: Path) -> None:
    (file,) = (path / "p0").glob("*.parquet")
    file.unlink()
    os.mkfifo(file)


def _pipe_of_properties(folder: Path) -> None:
    (folder / ".hoodie").mkdir(parents=True)
    os.mkfifo(folder / ".hoodie/hoodie.properties")
    hf.HudiTable.open(folder)


def _absurd_instants(folder: Path, time: str) -> None:
    path = table(folder)
    (commit,) = (path / ".hoodie/timeline").glob("*.commit")
    commit.rename(commit.with_name(f"{time}_{time}.commit"))
    found = hf.HudiTable.open(path)
    found.history()
    found.incremental(0)
    hf.write(pa.table({"id": ["a"], "part": ["p0"], "ts": [3]}), path, {"hoodie.metadata.enable": "false"})


def _slow_pattern(folder: Path) -> None:
    """A pattern that takes exponential time by backtracking, and a path that makes it."""
    from hudi_fast.index.buckets import bucket_count
    from hudi_fast.index.tagging import BucketSettings

    settings = BucketSettings(count=4, overrides=(("(a+)+$", 8),))
    assert bucket_count(settings, "a" * 60 + "!") == 4
    raise hf.CorruptTableError("decided in linear time", FILE)


def _long_line(folder: Path) -> None:
    """One line, continued half a million times."""
    lines = b"hoodie.table.name=t" + b"\\\n x" * 500_000 + b"\nhoodie.table.checksum=1\n"
    load_properties(stored(folder, lines, ".hoodie/hoodie.properties"))


ZEROS = zlib.compressobj(9, zlib.DEFLATED, -15)
NULLS = record(("a", {"type": "array", "items": "null"}))
WIDE = record(("a", ["null", {"type": "fixed", "name": "f", "size": 1 << 24}]))
LONG_DEFAULT = json.dumps({**record(), "fields": [{"name": "t", "type": "string", "default": "x" * (1 << 20)}]})

BOMBS: dict[str, Callable[[Path], object]] = {
    "2^62 records of no bytes": lambda _: decode_clean_plan(container(record(), b"", 2**62), FILE),
    "an array of 2^60 nulls": lambda _: decode_clean_plan(container(NULLS, varint(2**60) + varint(0)), FILE),
    "a deflated block": lambda _: decode_clean_plan(
        container(record(("a", "bytes")), ZEROS.compress(bytes(200 << 20)) + ZEROS.flush(), 1, b"deflate"), FILE
    ),
    "an unknown codec": lambda _: decode_clean_plan(container(record(), b"", 1, b"xz"), FILE),
    "a schema that doubles 40 times": lambda _: decode_clean_plan(container(laughs(40), b""), FILE),
    "a schema that doubles 40 times, of a block": lambda _: block(laughs(40), []),
    "a schema of 5000 levels": lambda _: avro_to_arrow(deep(5000), FILE),
    "a schema of 100 levels": lambda _: avro_to_arrow(deep(100), FILE),
    "a schema of 5000 levels, of a block": lambda _: AvroDecoder.compile(deep(5000), pa.schema([]), FILE),
    "a schema of 5000 records in a chain": lambda _: avro_to_arrow(json.dumps(chain(5000)), FILE),
    "a commit of 200 000 levels": lambda _: decode_commit_metadata(NESTED, FILE),
    "a commit of a number of 10^5 digits": lambda _: decode_commit_metadata(b'{"a":' + b"9" * 100_000 + b"}", FILE),
    "a manifest of 200 000 levels": lambda folder: _read_manifest_of(folder, NESTED),
    "ranges of 200 000 levels": lambda _: parse_hashing(NESTED, FILE),
    "a history of 200 000 levels": lambda _: parse_versions(NESTED.decode(), FILE),
    "a log block of 2^62 bytes": lambda folder: _log(folder, MAGIC + pack(">qii", 2**62, 1, 3) + bytes(60)),
    "a log block of 2^31 headers": lambda folder: _log(
        folder,
        b"".join(bytes(part) for part in encode_block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "1"}, b"")).replace(
            pack(">iii", 1, 0, 1), pack(">iii", 2**31 - 1, 0, 1)
        ),
    ),
    "a block of 2^31 records": lambda _: list(
        AvroDecoder.compile(json.dumps(record(("a", "int"))), pa.schema([("a", pa.int32())]), FILE).decode_block(
            pa.py_buffer(pack(">ii", 3, 2**31 - 1) + bytes(8)), FILE, 0
        )
    ),
    "a block of 2^60 deletes": lambda _: decode_delete_block(
        pa.py_buffer(pack(">ii", 3, 11) + varint(2**60).ljust(11, b"\0")), FILE, 0
    ),
    "nulls of 16 MiB": lambda _: block(WIDE, [b"\0"] * 5000),
    "a default of 1 MiB": lambda _: block(
        record(("x", "int")), [b"\0"] * 30_000 + [b""], pa.schema([pa.field("t", pa.string(), False)]), LONG_DEFAULT
    ),
    "a Parquet file of 2^40 rows": lambda folder: _parquet_of_rows(folder, 2**40),
    "a Parquet file of 2^62 rows": lambda folder: _parquet_of_rows(folder, 2**62),
    "positions of 2^31 records": lambda _: decode_positions(_positions(), 100, FILE, 0),
    "a gzip block of an HFile": lambda _: read_hfile(pa.py_buffer(_hfile_of_zeros()), FILE, 0),
    "a bloom filter of 2^31 hashes": lambda _: BloomFilter.from_base64(_full_filter(), None, where=FILE).might_contain(
        pa.array(["a"] * 100)
    ),
    "properties of one long line": _long_line,
    "a pattern of exponential time": _slow_pattern,
    "links around": lambda folder: _linked(folder, _around),
    "a partition that leads away": lambda folder: _linked(folder, _away),
    "a file that leads away": lambda folder: _linked(folder, _file_away),
    "a pipe instead of a file": lambda folder: _linked(folder, _pipe),
    "a pipe instead of the properties": _pipe_of_properties,
    "an instant of the year 9999": lambda folder: _absurd_instants(folder, FAR),
    "an instant of month 99": lambda folder: _absurd_instants(folder, NEVER),
    "an instant of 90 digits": lambda folder: _absurd_instants(folder, "9" * 90),
}
