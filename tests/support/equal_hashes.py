"""Different record keys with equal hashes, all 64 bits of them.

A step of the hash multiplies two words, and a product with zero is zero, whatever the other word is. So a key is built
whose state makes one word zero; the bytes that the other word comes from are free:

    the last step     the word before the last 8 bytes is zero: the last 8 bytes are free, and so is the length
    an earlier step   its second word is zero: the 8 bytes before that word are free

Prefixes are tried until the word that gives zero is printable ASCII, some thousand times for each kind of key.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hudi_fast.kernels import _bytes
from hudi_fast.kernels.key_table import hash_keys

from hudi_fast.formats.varlen import varlen_buffers

__all__ = ["equal_hashes", "hashes_of"]

_MASK = (1 << 64) - 1
_SALT_A, _SALT_B = int(_bytes._SALT_A), int(_bytes._SALT_B)


@cache
def equal_hashes(seed: int = 0) -> tuple[tuple[str, ...], ...]:
    """Groups of keys with one hash each. Keys of a group differ in as little as can be.

    In the first group: in the last byte, the byte eight before the end, one between them; and in the length, where one
    key begins with another one. In the second group: in bytes of the middle. In the third one: in the first byte.

    Args:
        seed: of the hashes; tables of (key, group) have the group's number plus one.
    """
    end = _with_free_end("", 32, seed)
    ends = [end + tail for tail in ("aaaaaaaa", "aaaaaaab", "aaabaaaa", "baaaaaaa")]
    ends += [_with_free_end(ends[0], 64, seed) + "aaaaaaaa", _with_free_end("", 48, seed) + "aaaaaaaa"]
    middles = _with_free_middle(48, seed)
    length, word = _with_free_start(seed)
    rest = word + "s" * (length - 16)
    starts = [head + rest for head in ("aaaaaaaa", "baaaaaaa", "aaaaaaab")]
    return tuple(ends), middles, tuple(starts)


def hashes_of(keys: Sequence[str]) -> npt.NDArray[np.uint64]:
    """uint64[n], the hashes that key tables use."""
    hashes = np.empty(len(keys), np.uint64)
    hash_keys(*varlen_buffers(pa.array(keys, pa.string())), hashes)
    return hashes


def _with_free_end(start: str, length: int, seed: int) -> str:
    """The first bytes of keys of ``length`` bytes, a multiple of 16, whose last 8 bytes are free."""
    for text in _texts(start, length - 16):
        if (word := _printable(_SALT_B ^ _state(text, length, seed))) is not None:
            return text + word
    raise AssertionError("no such key")


def _with_free_middle(length: int, seed: int) -> tuple[str, ...]:
    for text in _texts("", 16):
        if (word := _printable(_SALT_B ^ _state(text, length, seed))) is not None:
            rest = word + "m" * (length - 32)
            return tuple(text + middle + rest for middle in ("aaaaaaaa", "baaaaaaa", "aaaaaaab"))
    raise AssertionError("no such key")


def _with_free_start(seed: int) -> tuple[int, str]:
    """The length of keys whose first 8 bytes are free, and the 8 bytes after them."""
    for length in range(32, 10_000, 16):
        if (word := _printable(_SALT_B ^ _state("", length, seed))) is not None:
            return length, word
    raise AssertionError("no such key")


def _texts(start: str, length: int) -> Iterator[str]:
    """Texts of ``length`` bytes that begin with ``start``."""
    alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
    head = start + "k" * (length - len(start) - 3)
    return (head + "".join(each) for each in itertools.product(alphabet, repeat=3))


def _printable(word: int) -> str | None:
    raw = word.to_bytes(8, "little")
    return raw.decode() if all(0x20 < byte < 0x7F for byte in raw) else None


def _state(text: str, length: int, seed: int) -> int:
    """The state of the hash after the bytes of ``text``, 16 a step, of a key of ``length`` bytes."""
    raw, state = text.encode(), seed ^ ((length * _SALT_A) & _MASK)
    for at in range(0, len(raw), 16):
        left, right = (int.from_bytes(raw[start : start + 8], "little") for start in (at, at + 8))
        product = (left ^ _SALT_A) * (right ^ state ^ _SALT_B)
        state = (product >> 64) ^ (product & _MASK)
    return state
