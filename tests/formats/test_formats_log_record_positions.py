"""Record positions: real Hudi's texts, the Roaring format, damaged texts."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.log.blocks import HeaderKey, scan_log_blocks
from hudi_fast.formats.log.delete_block import decode_positions, encode_positions
from hudi_fast.storage.base import Storage
from tests.formats.format_files import damaged, log_files
from tests.support.examples import examples

# Decoded by hand from headers that Hudi 1.2.0 wrote: a run container, and an array container.
KNOWN = {
    "01000000 00000000 00000000 3b30 0000 01 0000 0300 0100 0000 0300": [0, 1, 2, 3],
    "01000000 00000000 00000000 3a300000 01000000 0000 0100 10000000 0700 0800": [7, 8],
}

# Runs, sparse numbers and dense ones, in several containers and buckets.
PIECES = st.one_of(
    st.builds(lambda start, length: range(start, start + length), st.integers(0, 300_000), st.integers(1, 70_000)),
    st.builds(lambda start, step: range(start, start + 9000 * step, step), st.integers(0, 300_000), st.integers(2, 9)),
    st.lists(st.integers(0, 2**34), max_size=30),
)


def text_of(raw):
    return base64.b64encode(raw).decode()


@pytest.mark.parametrize("hexadecimal", KNOWN)
def test_the_known_forms_are_read_and_written(hexadecimal):
    text = text_of(bytes.fromhex(hexadecimal))
    found = decode_positions(text)
    assert found.dtype == np.int64
    assert found.tolist() == KNOWN[hexadecimal]
    assert encode_positions(found[::-1]) == text


def test_headers_of_real_tables_are_written_as_they_were_read(golden):
    seen = 0
    for table in ("mor_v9_partial_update_logs", "mor_v9_schema_evolved_logs", "mor_v8_alltypes"):
        folder = golden(table).table
        storage = Storage(str(folder))
        for path in log_files(folder):
            for block in scan_log_blocks(storage, str(path.relative_to(folder))):
                text = block.headers.get(HeaderKey.RECORD_POSITIONS)
                if text is not None:
                    assert encode_positions(decode_positions(text)) == text
                    seen += 1
    assert seen >= 15


@given(pieces=st.lists(PIECES, max_size=4), optimise=st.booleans())
def test_bitmaps_are_read_in_every_form_that_the_format_has(pieces, optimise):
    bitmap = BitMap64([number for piece in pieces for number in piece])
    expected = list(bitmap)
    if optimise:
        bitmap.run_optimize()
    found = decode_positions(text_of(bitmap.serialize()))
    assert found.tolist() == expected
    assert BitMap64.deserialize(base64.b64decode(encode_positions(found))) == BitMap64(expected)


def test_no_positions():
    assert decode_positions(encode_positions(np.empty(0, np.int64))).tolist() == []


@settings(max_examples=examples(200))
@given(data=st.data(), sparse=st.booleans())
def test_damaged_bitmaps_give_ascending_numbers_or_an_error(data, sparse):
    bitmap = BitMap64([1, 5, 9, 70_001, 2**33]) if sparse else BitMap64([*range(100), *range(10**6, 10**6 + 9000, 2)])
    bitmap.run_optimize()
    raw = data.draw(damaged(bitmap.serialize()))
    try:
        found = decode_positions(text_of(raw), max_count=100_000)
    except CorruptTableError:
        return
    assert found.size <= 100_000
    assert (np.diff(found) > 0).all()
    assert found.size == 0 or found[0] >= 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("???", "found that"),
        ("AAA", "padding"),
        ("é", "ASCII"),
        ("", "ends after 0 bytes where 8"),
        (text_of(b"\xff" * 8), "ends after 8 bytes"),
        (text_of(bytes(9)), "ends after 8"),
        (text_of(b"\1" + bytes(7) + bytes(8)), "no bitmap begins at byte 12"),
        (text_of(b"\1" + bytes(11) + b"\x3a\x30\0\0\xff\xff\xff\x7f"), "2147483647 containers"),
        (text_of(bytes.fromhex("0100000000000000 00000080 3a300000 00000000")), "bucket 2147483648"),
        (text_of(bytes.fromhex(next(iter(KNOWN)).replace("0000 0300 0100", "0000 0400 0100"))), "malformed"),
    ],
)
def test_texts_that_are_no_positions_are_refused(text, told):
    with pytest.raises(CorruptTableError, match=r"file a.log, byte 12") as caught:
        decode_positions(text, path="a.log", offset=12)
    assert told in str(caught.value)


def test_counts_are_checked_before_numbers_are_made():
    text = encode_positions(np.arange(200_000))
    assert decode_positions(text, max_count=200_000).size == 200_000
    with pytest.raises(CorruptTableError, match="200000 positions or more, where 199999 are expected"):
        decode_positions(text, max_count=199_999)
    two_buckets = encode_positions(np.array([1, 2, 2**32, 2**32 + 1]))
    with pytest.raises(CorruptTableError, match="where 1 are expected"):
        decode_positions(two_buckets, max_count=3)


@pytest.mark.parametrize(("positions", "told"), [([3, -1], "not be negative; found -1"), ([1, 2, 1], "1 repeated")])
def test_positions_that_hudi_cannot_have_are_refused(positions, told):
    with pytest.raises(ValueError, match=told):
        encode_positions(np.array(positions, np.int64))
