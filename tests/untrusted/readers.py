"""Every reader of bytes of a table, with the real files that it reads.

A reader takes the bytes of one file, in a folder of its own. It returns, or raises one of :data:`REFUSALS`.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from struct import pack
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, HudiError
from hudi_fast.formats.avro.container import is_avro_container
from hudi_fast.formats.avro.rows import AvroDecoder, AvroEncoder
from hudi_fast.formats.avro.schema import arrow_to_avro, avro_to_arrow
from hudi_fast.formats.base_file import BaseFileFooter
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.hfile.reader import HFileReader
from hudi_fast.formats.hfile.writer import encode_hfile
from hudi_fast.formats.lance.base_file import LanceSettings, LanceWriter
from hudi_fast.formats.log.blocks import MAGIC, BlockType, HeaderKey, read_content, scan_log_blocks
from hudi_fast.formats.log.delete_block import decode_delete_block, decode_positions
from hudi_fast.formats.orc.write import OrcSettings, OrcWriter
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.formats.parquet.column_ranges import ranges_of_file
from hudi_fast.formats.parquet.footer import change_footer
from hudi_fast.index.buckets import parse_hashing
from hudi_fast.metadata_table.layout import load_definitions
from hudi_fast.schema.internal import parse_versions
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.log_archive import read_log, read_log_times
from hudi_fast.timeline.archive.lsm_archive import read_lsm_files, read_lsm_times, read_manifest
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.plans import (
    decode_clean_metadata,
    decode_clean_plan,
    decode_rollback_metadata,
    decode_rollback_plan,
    decode_savepoint,
)
from hudi_fast.timeline.service_plans import (
    decode_compaction_plan,
    decode_index_metadata,
    decode_index_plan,
    decode_requested_replace,
    decode_restore_metadata,
    decode_restore_plan,
)
from hudi_fast.view.base_files import open_file
from tests.naive import hfile as naive_hfile
from tests.naive import kryo_deletes as naive_kryo
from tests.support.golden import TABLES, unzip_golden
from tests.untrusted.mutations import mutated

__all__ = ["READERS", "REFUSALS", "Reader"]

REFUSALS = HudiError
"""What a reader may raise."""

_MAX_SEEDS = 60
_NAMES = ("a.file", "archived/.commits_", "history/", "hoodie.properties")


@dataclass(frozen=True, slots=True)
class Reader:
    """How one kind of file is read.

    Attributes:
        seeds: contents of real files.
        read: reads a content in an empty folder.
    """

    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], object]


# ---- real files


@cache
def _files(table: str) -> dict[str, bytes]:
    with zipfile.ZipFile(TABLES / f"{table}.zip") as archive:
        names = [name for name in archive.namelist() if name.startswith("table/") and not name.endswith("/")]
        return {name.removeprefix("table/"): archive.read(name) for name in names}


_SOURCES = (
    *("mor_v9_mixed", "h015_mor_rollback_compacted", "cow_v9_archived", "h015_cow_archived", "mor_v6_mixed"),
    *("mor_v9_record_index", "cow_v9_restored", "cow_v9_savepoint_rollback", "cow_v9_clustered", "mor_v9_alltypes"),
    *("mor_v9_cdc", "mor_v9_consistent_bucket", "cow_v9_schema_evolved", "mor_v9_parquet_log"),
)


def _real(wanted: Callable[[str, bytes], bool]) -> list[bytes]:
    found = {
        content for table in _SOURCES for name, content in _files(table).items() if content and wanted(name, content)
    }
    return sorted(found, key=len)[:_MAX_SEEDS]


def _bodies() -> list[bytes]:
    return _real(lambda name, content: is_avro_container(content) or ("/." not in name and content[:1] == b"{"))


def _logs() -> list[bytes]:
    return [*_real(lambda name, content: ".log." in name), _log_with_footers(), _log_with_unions()]


def _log_with_footers() -> bytes:
    """Two delete blocks with what no release of Hudi writes: footers, and bytes after them."""
    headers = pack(">iii", 1, HeaderKey.INSTANT_TIME, 17) + b"20250101000000000"
    whole = b""
    for content in _kryo_deletes()[:2]:
        footers = pack(">iii", 1, HeaderKey.SCHEMA, 2) + b"{}" + b"more"
        body = pack(">ii", 1, BlockType.DELETE) + headers + pack(">q", len(content)) + content + footers
        whole += MAGIC + pack(">q", len(body) + 8) + body + pack(">q", len(body) + 14)
    return whole


def _log_with_unions() -> bytes:
    """Two blocks of rows whose columns are unions of several types and records within themselves."""
    number = {"type": "record", "name": "number", "fields": [{"name": "n", "type": ["null", "long"]}]}
    kinds = ["int", "string", "null", number, {"type": "array", "items": ["boolean", "bytes"]}]
    tree = {"type": "record", "name": "tree", "fields": [{"name": "next", "type": ["null", "tree"]}]}
    fields = [{"name": "u", "type": kinds}, {"name": "m", "type": {"type": "map", "values": ["string", "double"]}}]
    schema = {"type": "record", "name": "row", "fields": [*fields, {"name": "t", "type": ["null", tree]}]}
    values = (7, "text", None, {"n": 5}, [True, b"raw", False])
    body = pack(">ii", 3, len(values))
    for at, value in enumerate(values):
        sink = io.BytesIO()
        row = {"u": value, "m": {"a": "x", "b": 0.5}, "t": {"next": {"next": None}} if at else None}
        fastavro.schemaless_writer(sink, fastavro.parse_schema(schema), row)
        body += pack(">i", len(sink.getvalue())) + sink.getvalue()
    text = json.dumps(schema).encode()
    headers = pack(">iii", 2, HeaderKey.INSTANT_TIME, 17) + b"20250101000000000"
    headers += pack(">ii", HeaderKey.SCHEMA, len(text)) + text
    block = pack(">ii", 1, BlockType.AVRO_DATA) + headers + pack(">q", len(body)) + body + pack(">i", 0)
    return 2 * (MAGIC + pack(">q", len(block) + 8) + block + pack(">q", len(block) + 14))


def _hfiles() -> list[bytes]:
    entries = [(b"hudi-key-%09d" % at, b"value" * (at % 5)) for at in range(40)]
    compressed = [naive_hfile.write([entries[:20], entries[20:]], codec, members=2) for codec in (3, 4, 6)]
    found = _real(lambda name, content: name.endswith(".hfile")) + compressed
    return found + [_log_hfile(content) for content in _logs() if b"TRABLK" in content]


def _log_hfile(content: bytes) -> bytes:
    """The HFile in a log block."""
    return content[content.index(b"DATABLK*") if b"DATABLK*" in content else 0 : len(content) - 12]


def _kryo_deletes() -> list[bytes]:
    """Contents of delete blocks of versions 1 and 2, behind their version and length."""
    values: tuple[tuple[str, Any], ...] = (
        *(("long", 7), ("String", "text"), ("double", 0.5), ("int", 3), (naive_kryo.UTF8, "é")),
        *((naive_kryo.DECIMAL, (-120, 2)), (naive_kryo.DATE, (2024, 2, 29)), (naive_kryo.TIMESTAMP, 10**12)),
    )
    partition = "2024/01/02"
    many = [[(f"key-{at}", partition, value) for at in range(3)] + [("é", None, None)] for value in values]
    found = [(2, naive_kryo.encode_records(entries)) for entries in many] + [(1, naive_kryo.encode_keys(many[0]))]
    return [version.to_bytes(4, "big") + len(raw).to_bytes(4, "big") + raw for version, raw in found]


def _parquets() -> list[bytes]:
    small = _real(lambda name, content: name.endswith(".parquet") and len(content) < 20_000)
    return [*small, _small_base_file()]


def _small_base_file() -> bytes:
    sink = pa.BufferOutputStream()
    rows = pa.table(
        {
            "_hoodie_record_key": [f"k{at}" for at in range(40)],
            "n": pa.array(range(40), pa.int64()),
            "d": pa.array([None, 1] * 20, pa.decimal128(20, 3)),
            "l": [[1, None], []] * 20,
            "s": [{"a": 1, "b": {"c": "x"}}] * 40,
            "t": pa.array(range(40), pa.timestamp("us", tz="UTC")),
        }
    )
    pq.write_table(rows, sink, row_group_size=15, compression="zstd")
    return sink.getvalue().to_pybytes()


def _orcs() -> list[bytes]:
    """ORC base files of each codec, with strings in dictionaries and without, and several stripes."""
    at = pa.timestamp("us", "UTC")
    part = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.field("element", at)))])
    rows = pa.table(
        {
            "_hoodie_record_key": [f"k{number}" for number in range(60)],
            "text": ["x", None, "yy"] * 20,
            "n": pa.array(range(60), pa.int64()),
            "d": pa.array([None, 1] * 30, pa.decimal128(20, 3)),
            "e": pa.array([None, 1.5] * 30, pa.float64()),
            "f": pa.array([True, False, None] * 20),
            "s": pa.array([{"a": 1, "b": [5, None]}, None] * 30, part),
            "m": pa.array([[("k", 1)], None, []] * 20, pa.map_(pa.string(), pa.int32())),
            "t": pa.array(range(60), at),
            "day": pa.array(range(60), pa.date32()),
            "raw": pa.array([b"abc", None] * 30, pa.binary()),
        }
    )
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for codec in ("zstd", "zlib", "snappy", "lz4", "none"):
            settings = OrcSettings(codec, 1 << 12)
            writer = OrcWriter(Storage(folder), "a.orc", rows.schema, settings, arrow_to_avro(rows.schema, "r", "n"))
            for start in (0, 20, 40):
                writer.write(rows.slice(start, 20))
            writer.close(BaseFileFooter(min_key="k0", max_key="k9"))
            found.append((Path(folder) / "a.orc").read_bytes())
    return [*found, found[-1].replace(b"\x1a\x03GMT", b"\x1a\x03CET")]  # of a writer elsewhere


def _lances() -> list[bytes]:
    """Lance base files with texts, numbers, lists and structs; one has more rows than a page."""
    rows = pa.table(
        {
            "_hoodie_record_key": [f"k{number}" for number in range(60)],
            "text": ["x", None, "a longer text"] * 20,
            "n": pa.array(range(60), pa.int64()),
            "f": pa.array([True, False, None] * 20),
            "s": pa.array([{"a": 1, "b": [5, None]}, None] * 30),
            "t": pa.array(range(60), pa.timestamp("us", "UTC")),
            "raw": pa.array([b"abc", None] * 30, pa.binary()),
        }
    )
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for table in (rows, pa.concat_tables([rows] * 40)):
            settings, avro = LanceSettings(), arrow_to_avro(rows.schema, "r", "n")
            writer = LanceWriter(Storage(folder), "a.lance", rows.schema, settings, avro)
            writer.write(table)
            writer.close(BaseFileFooter(min_key="k0", max_key="k9"))
            found.append((Path(folder) / "a.lance").read_bytes())
    return found


def _hfile_bases() -> list[bytes]:
    rows = pa.table({"_hoodie_record_key": [f"k{at}" for at in range(10, 60)], "n": [1, None] * 25, "key": [""] * 50})
    avro = arrow_to_avro(rows.schema, "r", "n")
    values = AvroEncoder.compile(rows.schema, avro).encode_values(rows.to_batches()[0])
    return [b"".join(bytes(part) for part in encode_hfile(rows[0].combine_chunks(), values, avro))]


def _footer(content: bytes) -> bytes:
    return content[-8 - int.from_bytes(content[-8:-4], "little") : -8]


def _blooms() -> list[bytes]:
    found = []
    for kind in ("SIMPLE", "DYNAMIC_V0"):
        one = BloomFilter.create(50, 0.01, 200, kind)
        one.add(pa.array([f"k{at}" for at in range(120)]))
        found.append(one.to_base64().encode())
    return found


def _schemas() -> list[bytes]:
    found = set()
    for content in _bodies():
        with contextlib.suppress(HudiError):
            found.add(decode_commit_metadata(content).extra_metadata.get("schema", "").encode())
    nested = {"type": "array", "items": ["null", {"type": "map", "values": {"type": "fixed", "name": "f", "size": 4}}]}
    union = ["null", "int", "string", {"type": "record", "name": "r", "fields": [{"name": "x", "type": nested}]}]
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    fields = [
        {"name": name, "type": kind, "default": None} for name, kind in (("a", union), ("b", nested), ("c", decimal))
    ]
    return [*filter(None, found), json.dumps({"type": "record", "name": "t", "fields": fields}).encode()]


def _histories() -> list[bytes]:
    """Schema histories; no golden table has one, so the two versions are written here."""
    fields: list[dict[str, Any]] = [{"id": 0, "name": "a", "optional": True, "type": "int"}]
    inside = {"type": "map", "key_id": 2, "key": "string", "value_id": 3, "value": "long", "value_optional": True}
    more = [*fields, {"id": 1, "name": "m", "optional": False, "type": inside, "doc": "x"}]
    versions = [
        {"max_column_id": 3, "version_id": at, "type": "record", "fields": each}
        for at, each in enumerate((fields, more))
    ]
    return [json.dumps({"schemas": versions}).encode()]


# ---- readers


def _stored(content: bytes, folder: Path, path: str) -> Storage:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return Storage(folder)


_BODIES: tuple[Callable[[bytes, str], object], ...] = (
    *(decode_commit_metadata, decode_clean_plan, decode_clean_metadata, decode_rollback_plan),
    *(decode_rollback_metadata, decode_savepoint, decode_restore_plan, decode_restore_metadata),
    *(decode_compaction_plan, decode_requested_replace, decode_index_plan, decode_index_metadata),
)


def _read_bodies(content: bytes, folder: Path) -> None:
    for decode in _BODIES:
        _tried(lambda decode=decode: decode(content, "a.file"))


def _tried(read: Callable[[], Any]) -> None:
    """Read it all; a refusal has to name the file."""
    try:
        answer = read()
        if isinstance(answer, Iterator):
            for _ in answer:
                pass
    except CorruptTableError as error:
        if error.path is None and not any(name in str(error) for name in _NAMES):
            raise AssertionError(f"the file is not named: {error}") from error
    except REFUSALS:
        pass


def _read_log(content: bytes, folder: Path) -> None:
    storage = _stored(content, folder, "a.file")
    for block in scan_log_blocks(storage, "a.file"):
        _tried(lambda block=block: _read_block(storage, block))


def _read_block(storage: Storage, block: Any) -> None:
    if block.kind in (BlockType.CORRUPT, BlockType.COMMAND):
        return
    content, text = read_content(storage, block), block.headers.get(HeaderKey.SCHEMA)
    if HeaderKey.RECORD_POSITIONS in block.headers:
        decode_positions(block.headers[HeaderKey.RECORD_POSITIONS], path=block.path)
    if block.kind is BlockType.DELETE:
        decode_delete_block(content, block.path, block.content_start)
    elif block.kind in (BlockType.AVRO_DATA, BlockType.CDC_DATA) and text:
        decoder = AvroDecoder.compile(text, avro_to_arrow(text, block.path), block.path)
        for batch in decoder.decode_block(content, block.path, block.content_start):
            batch.validate(full=True)
    elif block.kind is BlockType.HFILE_DATA:
        _read_hfile_content(content)


def _read_kryo(content: bytes, folder: Path) -> None:
    """With the length that belongs to it: what is behind it is damaged."""
    content = content[:4] + max(len(content) - 8, 0).to_bytes(4, "big") + content[8:]
    found = decode_delete_block(pa.py_buffer(content), "a.file", 0)
    for column in (found.keys, found.partitions, *found.ordering):
        column.validate(full=True)


def _read_hfile(content: bytes, folder: Path) -> None:
    _tried(lambda: _read_hfile_content(pa.py_buffer(content)))


def _read_hfile_content(content: pa.Buffer) -> None:
    with HFileReader.open(content, "a.file") as reader:
        reader.meta("bloomFilter")
        reader.lookup(pa.array(["", "k", "p0", "zzz", "hudi-key-000000005"]))
        reader.prefix(pa.array(["a", "hudi", ""]))
        for keys, values in reader.scan():
            keys.validate(full=True)
            values.validate(full=True)


def _read_properties(content: bytes, folder: Path) -> None:
    storage = _stored(content, folder, ".hoodie/hoodie.properties")
    TableConfig.from_properties(load_properties(storage), "a.file")


def _read_parquet(content: bytes, folder: Path) -> None:
    storage = _stored(content, folder, "a.file")

    def read() -> None:
        with open_base_file(storage, "a.file") as reader:
            names = reader.schema.names
            _tried(lambda: _check_buffers(reader.read(names)))
            _tried(lambda: [_check_buffers(batch) for batch in reader.batches(names, 7)])
            _tried(lambda: (reader.footer(), reader.leaves, reader.stored_bytes, reader.row_group_rows()))
            _tried(lambda: [reader.text_bounds(name) for name in names])
            _tried(lambda: ranges_of_file(reader))

    _tried(read)


def _check_buffers(rows: pa.Table | pa.RecordBatch) -> None:
    """Lengths and offsets have to be right; a changed byte of a value is another value, which nothing can find."""
    try:
        rows.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error) and "does not fit in precision" not in str(error):
            raise


def _read_base(content: bytes, folder: Path, extension: str) -> None:
    storage = _stored(content, folder, f"a.file.{extension}")

    def read() -> None:
        with open_file(storage, f"a.file.{extension}") as reader:
            reader.footer()
            for name in reader.schema.names:
                _tried(lambda name=name: reader.read([name]).validate(full=True))
            for batch in reader.batches(reader.schema.names, 7):
                batch.validate(full=True)

    _tried(read)


def _read_footer(content: bytes, folder: Path) -> None:
    _tried(lambda: change_footer(content, {(0, 0)}, {b"a": b"b"}, "a.file"))


def _read_bloom(content: bytes, folder: Path) -> None:
    text = content.decode("latin-1")
    for kind in (None, "DYNAMIC_V0"):
        _tried(
            lambda kind=kind: BloomFilter.from_base64(text, kind, where="a.file").might_contain(pa.array(["a", "k3"]))
        )


def _read_schema(content: bytes, folder: Path) -> None:
    text = content.decode("utf-8", "replace")
    empty = np.frombuffer((3).to_bytes(4, "big") + bytes(4), np.uint8)

    def read() -> None:
        schema = avro_to_arrow(text, "a.file")
        list(AvroDecoder.compile(text, schema, "a.file", reader_avro=text).decode_block(empty, "a.file", 0))

    _tried(read)
    _tried(lambda: AvroDecoder.compile(text, pa.schema([("zz", pa.int32())]), "a.file"))


def _read_archive_log(content: bytes, folder: Path) -> None:
    storage = _stored(content, folder, "archived/.commits_.archive.1_1-0-1")
    _tried(lambda: iter(read_log_times(storage, "archived", None, None)))
    _tried(lambda: read_log(storage, "archived", None, None))


def _read_lsm(content: bytes, folder: Path) -> None:
    name = "20261121054915632_20261121054921677_0.parquet"
    storage = _stored(content, folder, f"history/{name}")
    manifest = {"files": [{"fileName": name, "fileLen": len(content)}]}
    _stored(json.dumps(manifest).encode(), folder, "history/manifest_1")
    _stored(b"1", folder, "history/_version_")
    _tried(lambda: read_lsm_times(storage, "history", None, None))
    _tried(lambda: read_lsm_files(storage, "history", read_manifest(storage, "history").files))


def _read_manifest(content: bytes, folder: Path) -> None:
    storage = _stored(content, folder, "history/manifest_1")
    _stored(b"1", folder, "history/_version_")
    _tried(lambda: read_manifest(storage, "history"))


def _read_hashing(content: bytes, folder: Path) -> None:
    _tried(lambda: parse_hashing(content, "a.file"))


def _read_history(content: bytes, folder: Path) -> None:
    _tried(lambda: parse_versions(content.decode("utf-8", "replace"), "a.file"))


def _read_definitions(content: bytes, folder: Path) -> None:
    storage = _stored(content, folder, ".hoodie/.index_defs/index.json")
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.version": "9",
        "hoodie.table.index.defs.path": ".hoodie/.index_defs/index.json",
    }
    load_definitions(storage, TableConfig.from_properties(properties, "a.file"))


def _tables(name: str) -> Reader:
    """A whole table of which one file is damaged."""

    @cache
    def unzipped(folder: Path) -> tuple[Path, tuple[Path, ...]]:
        table = unzip_golden(name, folder.parent / f"{folder.name}-golden").table
        return table, tuple(
            sorted(
                one
                for one in table.rglob("*")
                if one.is_file() and one.stat().st_size and not one.name.endswith(".crc")
            )
        )

    def read(content: bytes, folder: Path) -> None:
        table, files = unzipped(folder)
        rng = random.Random(content)
        file = rng.choice(files)
        whole = file.read_bytes()
        same = [one.read_bytes() for one in files if one.suffix == file.suffix][:10]
        try:
            file.write_bytes(mutated([whole, *same] if rng.random() < 0.2 else [whole], rng))
            _use(table)
        finally:
            file.write_bytes(whole)

    return Reader(lambda: [b"0123456789abcdef"], read)


def _use(path: Path) -> None:
    """All that reads a table."""

    def tried(act: Callable[[], Any]) -> Any:
        try:
            return act()
        except REFUSALS:
            return None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = tried(lambda: hf.HudiTable.open(path))
        if table is None:
            return
        tried(table.to_arrow)
        tried(lambda: table.to_arrow(filter=pc.field("id") == 3))
        tried(lambda: table.to_arrow(as_of="2026-11-21 05:47:26"))
        tried(lambda: table.incremental(0))
        tried(lambda: table.history(archived=True))
        tried(table.files)
        tried(table.partitions)
        tried(table.stats)
        tried(lambda: table.services.validate())


READERS: dict[str, Reader] = {
    "instant bodies": Reader(_bodies, _read_bodies),
    "log files": Reader(_logs, _read_log),
    "Kryo deletes": Reader(_kryo_deletes, lambda content, folder: _tried(lambda: _read_kryo(content, folder))),
    "HFiles": Reader(_hfiles, _read_hfile),
    "properties": Reader(lambda: _real(lambda name, _: name.endswith("hoodie.properties")), _read_properties),
    "Parquet files": Reader(_parquets, _read_parquet),
    "ORC files": Reader(_orcs, lambda content, folder: _read_base(content, folder, "orc")),
    "Lance files": Reader(_lances, lambda content, folder: _read_base(content, folder, "lance")),
    "HFile base files": Reader(_hfile_bases, lambda content, folder: _read_base(content, folder, "hfile")),
    "Parquet footers": Reader(lambda: [_footer(one) for one in _parquets()], _read_footer),
    "bloom filters": Reader(_blooms, _read_bloom),
    "Avro schemas": Reader(_schemas, _read_schema),
    "archived logs": Reader(lambda: _real(lambda name, _: "commits_.archive" in name), _read_archive_log),
    "archived timelines": Reader(
        lambda: _real(lambda name, _: "/history/" in name and name.endswith(".parquet")), _read_lsm
    ),
    "manifests": Reader(lambda: _real(lambda name, _: "/manifest_" in name), _read_manifest),
    "hashing metadata": Reader(lambda: _real(lambda name, _: name.endswith(".hashing_meta")), _read_hashing),
    "schema history": Reader(_histories, _read_history),
    "index definitions": Reader(lambda: _real(lambda name, _: "index_defs/" in name), _read_definitions),
    "table mor_v9": _tables("mor_v9_mixed"),
    "table mor_v6": _tables("h015_mor_rollback_compacted"),
    "table archived": _tables("cow_v9_archived"),
    "table record index": _tables("mor_v9_record_index"),
    "table bucket": _tables("mor_v9_consistent_bucket"),
    "table cdc": _tables("mor_v9_cdc"),
    "table evolved": _tables("mor_v9_schema_evolved_logs"),
}
