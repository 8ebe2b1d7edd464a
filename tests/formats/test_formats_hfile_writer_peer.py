"""HFiles of ours, read by the readers of real Hudi: its own (1.2), and HBase's (0.15)."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.hfile.reader import Codec
from hudi_fast.formats.hfile.writer import encode_hfile

DICE = random.Random(3)
TEXTS = sorted({"".join(DICE.choices("aß日ﬀ😀", k=6)) for _ in range(60)}, key=str.encode)
BLOCK = 1 << 20


@pytest.fixture(params=["hudi_12", "hudi_015"])
def hudi(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("codec", [Codec.GZ, Codec.NONE])
@pytest.mark.parametrize(
    ("entries", "block_size", "with_bloom"),
    [
        ([], BLOCK, False),
        ([], BLOCK, True),
        ([(b"one", b"1")], BLOCK, False),
        # Hudi's own reader loses the short entries at the end if the block says that it has checksums of 16 KiB each.
        ([*((key, key * 40_000) for key in (b"a", b"b", b"c")), (b"y", b""), (b"z", b"")], BLOCK, True),
        # Several blocks: index keys are compared with the keys that are looked for.
        ([(text.encode(), DICE.randbytes(number % 7)) for number, text in enumerate(TEXTS)], 300, False),
        ([(b"k" * 32_767, b"1"), (b"l", b"2")], 1000, True),
    ],
)
def test_real_readers_scan_and_find_every_entry(hudi, tmp_path, codec, entries, block_size, with_bloom):
    bloom = BloomFilter.create(10_000, 1e-9, 100_000) if with_bloom else None
    keys, values = [key for key, _ in entries], [value for _, value in entries]
    path = tmp_path / "a.hfile"
    with open(path, "wb") as sink:
        for part in encode_hfile(
            pa.array(keys, pa.binary()), pa.array(values, pa.binary()), '"string"', codec, block_size, bloom
        ):
            sink.write(part)
    answer = hudi.hfile(path, sorted({*keys, *(key[:-1] + b"!" for key in keys), b"0", b"zz"}))
    assert answer.count == len(entries)
    assert answer.entries == entries
    assert answer.found == entries
    assert answer.bloom == (bloom.to_base64() if bloom else None)
