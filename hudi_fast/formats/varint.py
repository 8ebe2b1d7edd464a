"""Numbers of variable length, as Avro, Protocol Buffers, Thrift and Kryo write them."""

from __future__ import annotations

__all__ = ["read_varint", "snappy_size", "varint", "zigzag"]


def varint(value: int) -> bytes:
    """A number, 0 or more, in groups of seven bits, the lowest first; a set high bit means that more follow."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    """A signed number of 64 bits as :func:`varint`; numbers near 0 are short.

    Raises:
        ValueError: it has more bits.
    """
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} does not fit into 64 bits")
    return varint(value << 1 ^ value >> 63)


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number of at most 64 bits that :func:`varint` wrote at a position, and the position after it.

    Raises:
        ValueError: no byte ends it.
    """
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value & (1 << 64) - 1, at + place + 1
    raise ValueError("a number without end")


def snappy_size(block: bytes | memoryview) -> int:
    """Bytes of a Snappy block before compression: a number of at most five bytes at its beginning.

    Raises:
        ValueError: there is none.
    """
    try:
        return read_varint(block[:5], 0)[0]
    except ValueError:
        raise ValueError("a Snappy block without a size") from None
