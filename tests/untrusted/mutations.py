"""Bytes of real files, damaged as a hostile author would: lengths, ends, parts of other files, and odd JSON values."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

__all__ = ["mutated"]

_NUMBERS = (0, 1, 2, 127, 128, 255, 2**15 - 1, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1)
_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**63, 2**70, 1.5, float("nan"), "", "..", "/etc/passwd", "a\nb\0c", "9" * 20),
    *("null", "x" * 300, "é\ud800", [], {}, [None], {"": None}, [[]], "2026", "00000000000000000", "99999999999999999"),
)


def mutated(seeds: Sequence[bytes], rng: random.Random) -> bytes:
    """One of the files after one to three changes; a JSON document changes by whole values half of the time."""
    raw = rng.choice(seeds)
    if raw[:1] in (b"{", b"[") and rng.random() < 0.5:
        return _mutated_json(raw, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        raw = rng.choice((_flip, _number, _varint, _cut, _repeat, _splice, _end))(raw, rng, seeds)
    return raw


def _flip(raw: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    at = _place(raw, rng)
    return raw[:at] + bytes([rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)))]) + raw[at + 1 :]


def _number(raw: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """A field of fixed length holds another number."""
    at, width = _place(raw, rng), rng.choice((2, 4, 8))
    value = rng.choice((1, -1)) * rng.choice(_NUMBERS) % (1 << 8 * width)
    return raw[:at] + value.to_bytes(width, rng.choice(("big", "little"))) + raw[at + width :]


def _varint(raw: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """A number of variable length is put in, or replaces one byte."""
    at, value, out = _place(raw, rng), rng.choice(_NUMBERS), bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return raw[:at] + bytes(out) + bytes([value]) + raw[at + rng.randrange(2) :]


def _cut(raw: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    at = _place(raw, rng)
    return raw[:at] + raw[at + rng.randrange(1, 64) :]


def _repeat(raw: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    at = _place(raw, rng)
    return raw[:at] + raw[at : at + rng.randrange(1, 200)] * rng.choice((2, 3, 50)) + raw[at:]


def _splice(raw: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    other = rng.choice(seeds)
    return raw[: _place(raw, rng)] + other[_place(other, rng) :]


def _end(raw: bytes, rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    return raw[: _place(raw, rng)]


def _place(raw: bytes, rng: random.Random) -> int:
    """Near the beginning or the end, where headers and footers are, or anywhere."""
    last = max(0, len(raw) - 1)
    near = min(last, rng.randrange(200))
    return rng.choice((near, last - near, rng.randint(0, last), rng.randint(0, last)))


def _mutated_json(raw: bytes, rng: random.Random) -> bytes:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):  # not JSON, or nested deeply by an earlier change
        return raw[: len(raw) // 2]
    for _ in range(rng.choice((1, 1, 2))):
        document = _replaced(document, rng)
    if rng.random() < 0.05:
        return b'{"a":' * 20_000 + json.dumps(document).encode() + b"}" * 20_000
    return json.dumps(document).encode()


def _replaced(document: Any, rng: random.Random) -> Any:
    """The document with one value at any depth replaced, removed or nested."""
    children = (
        list(document)
        if isinstance(document, dict)
        else list(range(len(document or ())))
        if isinstance(document, list)
        else []
    )
    if not children or rng.random() < 0.15:
        if isinstance(document, str) and document[:1] in ("{", "[") and rng.random() < 0.8:
            return _mutated_json(document.encode(), rng).decode("utf-8", "replace")
        return rng.choice((deepcopy(rng.choice(_VALUES)), [document], {"x": document}))
    key = rng.choice(children)
    if rng.random() < 0.1:
        del document[key]
    else:
        document[key] = _replaced(document[key], rng)
    return document
