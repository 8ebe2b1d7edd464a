"""ORC base files: rows, stripes, Hudi's keys, time zones of writers, damage.

Modules: hudi_fast.formats.orc.stripe, hudi_fast.formats.orc.tail, hudi_fast.formats.orc.read.
"""

from __future__ import annotations

import datetime as dt
import errno
import io
import random
import zlib
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError, HudiError, UnsupportedFeatureError
from hudi_fast.formats.orc.read import open_orc_file
from hudi_fast.formats.orc.stripe import (
    DICTIONARY_DATA,
    LENGTH,
    PRESENT,
    SECONDARY,
    StripeStreams,
    parse_stripe_footer,
)
from hudi_fast.formats.orc.tail import LZ4, LZO, SNAPPY, ZLIB, ZSTD, Sections, Stripe, parse_tail
from hudi_fast.formats.orc.types import plain_type
from hudi_fast.formats.orc.write import OrcSettings, OrcWriter
from hudi_fast.formats.varint import encode_message
from hudi_fast.storage.base import Storage
from tests.formats.orc_rows import AT, KEYS, LONG_AGO, PART, ROWS, SCHEMA, UTC, written
from tests.support.examples import examples


def test_the_footer_has_hudis_keys_for_every_reader_of_orc(tmp_path: Path) -> None:
    storage = written(tmp_path, [ROWS])
    with open_orc_file(storage, "p/a.orc") as reader:
        assert reader.footer() == KEYS
    found = orc.ORCFile(tmp_path / "p" / "a.orc").metadata
    assert sorted(found) == [
        b"hoodie_bloom_filter_type_code",
        b"hoodie_max_record_key",
        b"hoodie_min_record_key",
        b"orc.avro.schema",
        b"org.apache.hudi.bloomfilter",
    ]


def test_a_file_without_avro_schema_has_the_types_that_hudi_derives(tmp_path: Path) -> None:
    rows = pa.table({"n": pa.array([1], pa.int8()), "t": pa.array([AT], pa.timestamp("ns")), "s": ["x"]})
    orc.write_table(rows, tmp_path / "a.orc")
    with open_orc_file(Storage(tmp_path), "a.orc") as reader:
        assert reader.schema == pa.schema([("n", pa.int32()), ("t", UTC), ("s", pa.string())])
        assert reader.read(["t", "n"]).to_pylist() == [{"t": AT, "n": 1}]
    assert plain_type(PART) == pa.struct([("at", UTC), ("walls", pa.list_(pa.field("element", UTC)))])


@pytest.mark.parametrize("stripe_bytes", [1 << 16, 1 << 20])
def test_instants_of_a_writer_elsewhere_are_exact_in_the_hour_that_clocks_show_twice(
    stripe_bytes: int, tmp_path: Path
) -> None:
    start = dt.datetime(2020, 10, 24, 20, tzinfo=dt.UTC)
    moments = [start + dt.timedelta(minutes=20 * at) for at in range(24)] + [AT]
    rows = pa.table({"at": pa.array(moments, UTC), "s": pa.array([{"at": one} for one in moments])})
    storage = written(tmp_path, [rows], "none", stripe_bytes)
    path = tmp_path / "p" / "a.orc"
    raw = path.read_bytes()
    assert b"\x1a\x03GMT" in raw
    path.write_bytes(raw.replace(b"\x1a\x03GMT", b"\x1a\x03CET"))  # seconds since 2015 began an hour earlier
    with open_orc_file(storage, "p/a.orc") as reader:
        found = reader.read(["at", "s"])
    expected = [one - dt.timedelta(hours=1) for one in moments]
    assert found["at"].to_pylist() == expected
    assert [one["at"] for one in found["s"].to_pylist()] == expected
    path.write_bytes(raw.replace(b"\x1a\x03GMT", b"\x1a\x03XYZ"))
    with open_orc_file(storage, "p/a.orc") as reader, pytest.raises(HudiError, match=r"p/a\.orc.*'XYZ'"):
        reader.read(["at"])


@pytest.mark.parametrize("codec", ["zstd", "lz4", "none"])
def test_timestamps_beyond_nanoseconds_are_exact_at_every_depth(codec: str, tmp_path: Path) -> None:
    far = dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)
    first = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
    moments = [far, None, first, dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC), AT] * 40
    deep = [{"at": far, "walls": [LONG_AGO]}, None, {"at": None, "walls": None}, {"at": first, "walls": []}, None] * 40
    rows = pa.table(
        {
            "n": range(200),
            "at": pa.array(moments, UTC),
            "part": pa.array(deep, PART),
            "parts": pa.array(
                [[one, {"at": AT}] if one else None for one in deep], pa.list_(pa.field("element", PART))
            ),
            "moments": pa.array([[("a", one)] if one else [] for one in moments], SCHEMA.field("moments").type),
        }
    )
    with open_orc_file(written(tmp_path, [rows], codec), "p/a.orc") as reader:
        assert reader.read(rows.column_names).equals(rows)
        assert reader.read(["moments", "n"]).equals(rows.select(["moments", "n"]))


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(
        st.one_of(
            st.tuples(st.just("same"), st.integers(1, 700), st.integers(0, 999_999)),
            st.tuples(st.just("steps"), st.integers(1, 700), st.integers(-900, 900)),
            st.tuples(st.just("few"), st.integers(1, 700), st.integers(0, 2**30)),
            st.tuples(st.just("any"), st.integers(1, 700), st.integers(0, 2**30)),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_nanoseconds_in_every_kind_of_run(parts: list[tuple[str, int, int]], tmp_path: Path) -> None:
    micros: list[int] = []
    for kind, count, number in parts:
        rng = random.Random(number)
        if kind == "same":
            micros += [number] * count
        elif kind == "steps":
            micros += [(500_000 + number * at) % 1_000_000 for at in range(count)]
        else:
            few = kind == "few"
            micros += [rng.randrange(8 if few and rng.random() < 0.95 else 1_000_000) for _ in range(count)]
    values = [1_600_000_000_000_000 + one + 1_000_000 * (at % 1000) for at, one in enumerate(micros)]
    rows = pa.table({"at": pa.array(values, pa.int64()).cast(UTC)})
    storage = written(tmp_path, [rows], "none")
    path = tmp_path / "p" / "a.orc"
    with open_orc_file(storage, "p/a.orc") as reader:
        assert reader.read(["at"]).equals(rows)
    path.write_bytes(path.read_bytes().replace(b"\x1a\x03GMT", b"\x1a\x03CET"))
    with open_orc_file(storage, "p/a.orc") as reader:
        found = reader.read(["at"])["at"].cast(pa.int64()).to_pylist()
    assert found == [one - 3_600_000_000 for one in values]


def test_fractions_of_seconds_before_1970_are_refused(tmp_path: Path) -> None:
    early = dt.datetime(1955, 1, 1, 12, 30, 5, 4, tzinfo=dt.UTC)
    for values in ([AT, early], [early.replace(microsecond=0), None, early]):
        with pytest.raises(UnsupportedFeatureError, match=r"column at .* before 1970 .* 1955-01-01 12:30:05\.000004"):
            written(tmp_path, [pa.table({"at": pa.array(values, UTC)})])
    whole = pa.table({"at": pa.array([early.replace(microsecond=0), AT], UTC)})
    with open_orc_file(written(tmp_path, [whole]), "p/a.orc") as reader:
        assert reader.read(["at"]).equals(whole)


def test_an_error_of_the_output_is_raised_as_it_is(tmp_path: Path) -> None:
    class Full(io.RawIOBase):
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "no space left")

        def writable(self) -> bool:
            return True

    writer = OrcWriter(Storage(tmp_path), "a.orc", ROWS.schema, OrcSettings("none", 1 << 12), "{}")
    writer._sink.output = Full()
    with pytest.raises(OSError, match="no space left") as caught:
        list(map(writer.write, [ROWS] * 2000))
    assert caught.value.errno == errno.ENOSPC
    writer.abort()
    assert not (tmp_path / "a.orc").exists()


@pytest.mark.slow("100000-False")
@pytest.mark.parametrize(("levels", "is_read"), [(60, True), (1000, False), (100_000, False)])
def test_types_nested_too_deeply_are_refused_before_the_reader_of_orc_sees_them(
    levels: int, is_read: bool, tmp_path: Path
) -> None:
    lists = [encode_message((1, 10), (2, framed_number(at + 2))) for at in range(levels)]
    root = encode_message((1, 12), (2, framed_number(1)), (3, b"a"))
    types = encode_message(*((4, one) for one in [root, *lists, encode_message((1, 3))]))
    footer = encode_message((1, 3), (2, 3)) + types + encode_message((6, 0), (8, 10_000))
    script = encode_message((1, len(footer)), (2, 0), (4, b"\0\x0c"), (8000, b"ORC"))
    (tmp_path / "a.orc").write_bytes(b"ORC" + footer + script + bytes([len(script)]))
    if is_read:
        with open_orc_file(Storage(tmp_path), "a.orc") as reader:
            assert reader.num_rows == 0
    else:
        with pytest.raises(CorruptTableError, match=r"level 64.*a\.orc"):
            open_orc_file(Storage(tmp_path), "a.orc")


@pytest.mark.parametrize("size", [0, 1 << 23, 1 << 45, (1 << 64) - 1])
def test_blocks_larger_than_a_chunk_can_be_are_refused(size: int, tmp_path: Path) -> None:
    """Apache ORC's reader takes memory for a block before it reads one, and does not look whether there is any."""
    written(tmp_path, [ROWS], "snappy")
    path = tmp_path / "p/a.orc"
    raw = path.read_bytes()
    script = raw[-1 - raw[-1] : -1]
    changed = script.replace(encode_message((3, 256 << 10)), encode_message((3, size)))
    assert changed != script
    path.write_bytes(raw[: -1 - raw[-1]] + changed + bytes([len(changed)]))
    with pytest.raises(CorruptTableError, match=r"blocks of .*p/a\.orc"):
        open_orc_file(Storage(tmp_path), "p/a.orc")


def framed_number(value: int) -> bytes:
    return encode_message((0, value))[1:]


@pytest.mark.slow
def test_a_tail_that_contradicts_itself_is_refused() -> None:
    wide = bytes.fromhex("1208220608") + b"\x0e\x28\xff\xff\x03"  # a decimal of 65535 digits
    for serialized in (wide, b"\x12\x02\x30\x05", b"\x12\x04\x1a\x02\x28\x80", b"\x0a\x01\x08", b"\x13"):
        with pytest.raises(CorruptTableError):
            parse_tail(serialized, "a.orc")
    sections = parse_tail(b"\x0a\x02\x10\x04", "a.orc").sections
    assert sections == Sections("a.orc", LZ4, 0)
    for section in (b"\x01\x00", b"\xff\xff\xff", b"\x08\x00\x00\xf0\xff\xff\xff", b"\x04\x00\x00\x1f\x00"):
        with pytest.raises(ValueError, match="a chunk of"):
            parse_stripe_footer(sections, Stripe(3, 0, 0, len(section), 1), section)


def decimals(folder: Path, codec: str) -> tuple[Path, int]:
    """A file with decimals within lists, and the place of their scales."""
    amounts = pa.array([[Decimal("1.50"), None], None, [Decimal("-2.25")] * 9], pa.list_(pa.decimal128(25, 2)))
    storage = written(folder, [pa.table({"key": ["a", "b", "c"], "amounts": amounts})], codec)
    with open_orc_file(storage, "p/a.orc") as reader:
        assert reader.read(["amounts"])["amounts"].combine_chunks().equals(amounts)
        start, length = reader._footers[0].places[3, SECONDARY]
    assert length
    return folder / "p/a.orc", start


@pytest.mark.parametrize(("codec", "head"), [("none", 0), ("lz4", 3), ("zstd", 3)])
@pytest.mark.parametrize("scale", [0x7F, 0x01, 0x4E])
def test_scales_that_keep_arrow_busy_for_minutes_are_refused(codec: str, head: int, scale: int, tmp_path: Path) -> None:
    """Scales of -64, -1 and 39: the reader takes negative ones for some near 2 to the power of 32."""
    path, start = decimals(tmp_path, codec)
    raw = bytearray(path.read_bytes())
    assert raw[start + head + 1] == 4, raw[start : start + 12].hex()
    raw[start + head + 1] = scale
    path.write_bytes(raw)
    with open_orc_file(Storage(tmp_path), "p/a.orc") as reader:
        assert reader.read(["key"]).num_rows == 3
        with pytest.raises(CorruptTableError, match=r"column amounts: decimals of the scales.*p/a\.orc"):
            reader.read(["amounts"])


def changed(folder: Path, rows: pa.Table, streams: dict[tuple[int, int], bytes], **options: float) -> Storage:
    """A file without compression, in which streams of a type have another content."""
    orc.write_table(rows, folder / "a.orc", compression="uncompressed", **options)
    with open_orc_file(Storage(folder), "a.orc") as reader:
        assert reader.read(rows.column_names).equals(rows)
        old = reader._streams(0, rows.column_names)
        stored = {**old.stored, **{one: memoryview(content) for one, content in streams.items()}}
        new = StripeStreams(old.sections, old.stripe, old.footer, stored)
        content = new.as_file(reader._serialized, timestamps_as_numbers=False)
    (folder / "a.orc").write_bytes(content)
    return Storage(folder)


def refused(storage: Storage, text: str) -> None:
    with open_orc_file(storage, "a.orc") as reader, pytest.raises(CorruptTableError, match=rf"{text}.*a\.orc"):
        reader.read(reader.schema.names)


LONG = bytes.fromhex("3a7fffffffffffffff")
"""Five lengths of 2 to the power of 63, less 1."""


@pytest.mark.parametrize("lengths", [b"\x02\x03", LONG, b"\x3a" + b"\xff" * 8, b"\x1a\x00\xff\xff\xff"])
def test_texts_longer_than_the_bytes_that_are_there_are_refused(lengths: bytes, tmp_path: Path) -> None:
    rows = pa.table({"n": range(5), "t": ["ab"] * 5})
    refused(changed(tmp_path, rows, {(2, LENGTH): lengths}), "stripe 0: column t: lengths from .* 10 are possible")


@pytest.mark.parametrize("lengths", [b"\x02\x04", LONG, b"\x02\x02" * 9])
def test_dictionaries_longer_than_the_bytes_that_are_there_are_refused(lengths: bytes, tmp_path: Path) -> None:
    rows = pa.table({"t": ["ab", "cd", "ef", "gh", "ij", None] * 9})
    storage = changed(tmp_path, rows, {(1, LENGTH): lengths}, dictionary_key_size_threshold=1.0)
    with open_orc_file(storage, "a.orc") as reader:
        assert (1, DICTIONARY_DATA) in reader._streams(0, ["t"]).stored
    refused(storage, "column t: (lengths from|.* bytes where)")


def test_lists_of_more_entries_than_the_bytes_stand_for_are_refused(tmp_path: Path) -> None:
    rows = pa.table({"l": pa.array([[1, 2]] * 5, pa.list_(pa.int64()))})
    refused(changed(tmp_path, rows, {(1, LENGTH): LONG}), "column l: lengths from")
    refused(changed(tmp_path, rows, {(1, LENGTH): b"\x1a\x01\x00\x00\x00"}), "column l: .* values in .* bytes")


def test_more_rows_than_the_bytes_stand_for_are_refused(tmp_path: Path) -> None:
    orc.write_table(pa.table({"n": [7] * 1000}), tmp_path / "a.orc", compression="uncompressed")
    with open_orc_file(Storage(tmp_path), "a.orc") as reader:
        old, serialized = reader._streams(0, ["n"]), reader._serialized
    stripe = Stripe(3, 0, old.stripe.data_length, 0, 2**40)
    content = StripeStreams(old.sections, stripe, old.footer, old.stored).as_file(serialized, False)
    (tmp_path / "a.orc").write_bytes(content)
    refused(Storage(tmp_path), f"column n: {2**40} values in")


@pytest.mark.parametrize("flags", [b"\xff\xbf", b"\xfe\xff\x7f", b"\xff\xf0", b"\xfd\xff"])
def test_maps_with_null_keys_are_refused(flags: bytes, tmp_path: Path) -> None:
    """Ten keys, of which the second, the ninth or the fifth is null, or whose flags are cut off."""
    rows = pa.table({"m": pa.array([[("a", 1), ("b", 2)]] * 5, pa.map_(pa.string(), pa.int64()))})
    refused(changed(tmp_path, rows, {(2, PRESENT): flags}), "column m: (null as the key|flags are cut off)")


@pytest.mark.parametrize("flags", [b"\x00\xff", b"\xfe\xff\xc0", b"\xfe\xff\xff"])
def test_maps_whose_keys_are_said_to_be_there_are_read(flags: bytes, tmp_path: Path) -> None:
    rows = pa.table({"m": pa.array([[("a", 1), ("b", 2)]] * 5, pa.map_(pa.string(), pa.int64()))})
    with open_orc_file(changed(tmp_path, rows, {(2, PRESENT): flags}), "a.orc") as reader:
        assert reader.read(["m"]).to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("codec", [ZLIB, SNAPPY, LZ4, ZSTD])
def test_a_section_has_no_more_bytes_than_its_bound(codec: int) -> None:
    names = {ZLIB: "zlib", SNAPPY: "snappy", LZ4: "lz4_raw", ZSTD: "zstd"}
    sections = Sections("a.orc", codec, 1 << 18)
    for plain in (bytes(1 << 18), b"x", random.Random(1).randbytes(5000), b"ab" * 40_000):
        if codec == ZLIB:
            packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
            chunk = packer.compress(plain) + packer.flush()
        else:
            chunk = pa.Codec(names[codec]).compress(plain, asbytes=True)
        stored = (len(chunk) << 1).to_bytes(3, "little") + chunk + sections.stored(b"tail")
        assert sections.content(stored) == plain + b"tail"
        assert len(plain) + 4 <= sections.max_bytes(stored) <= (1 << 18) + 4
        with pytest.raises(ValueError, match="are allowed"):
            sections.content(stored, len(plain) + 3)
    with pytest.raises(ValueError, match="a chunk of"):
        sections.max_bytes(b"\x08\x00\x00abc")
    with pytest.raises(UnsupportedFeatureError, match="LZO"):
        Sections("a.orc", LZO, 1 << 18).content(b"\x02\x00\x00a")


@pytest.mark.slow
def test_a_stripe_takes_one_read_for_its_footer_and_one_for_columns_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random_texts = [random.Random(number).randbytes(8).hex() for number in range(60_000)]
    names = ["a", "b", "c", "d"]
    orc.write_table(pa.table(dict.fromkeys(names, random_texts)), tmp_path / "a.orc", compression="uncompressed")
    with open_orc_file(Storage(tmp_path), "a.orc") as reader:
        reads: list[tuple[int, int]] = []
        read_at = reader._read_at

        def counted(start: int, length: int) -> bytes:
            reads.append((start, length))
            return read_at(start, length)

        monkeypatch.setattr(reader, "_read_at", counted)
        assert reader.num_row_groups == 1
        for columns, expected in (["b", "c"], 2), (["a"], 1), (["a", "d"], 2), (names, 1):
            reads.clear()
            assert reader.read(columns)[columns[-1]].to_pylist() == random_texts
            assert len(reads) == expected
        whole = reads[0][1]
        reads.clear()
        reader.read(["a", "d"])
        assert sum(length for _, length in reads) < 0.6 * whole
