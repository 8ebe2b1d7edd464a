"""Encode and decode numbers of variable length, as in Avro, Protocol Buffers, Thrift and Kryo."""

from __future__ import annotations

__all__ = ["read_varint", "snappy_size", "varint", "zigzag"]


def varint(value: int) -> bytes:
    """Encode a non-negative number in groups of seven bits, the lowest first; a set high bit means that more follow."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    """Encode a signed number of 64 bits like :func:`varint`; numbers near 0 are short.

    Raises:
        ValueError: the number has more bits.
    """
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} does not fit into 64 bits")
    return varint(value << 1 ^ value >> 63)


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number of at most 64 bits at a position, encoded by :func:`varint`, and the position after it.

    Raises:
        ValueError: no byte ends the number.
    """
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & (1 << 64) - 1, at + place + 1
    raise ValueError("a number without end")


def snappy_size(block: bytes | memoryview) -> int:
    """The uncompressed bytes of a Snappy block: a number of at most five bytes at its beginning.

    Raises:
        ValueError: the block does not begin with such a number.
    """
    try:
        return read_varint(block[:5], 0)[0]
    except ValueError:
        raise ValueError("a Snappy block without a size") from None
