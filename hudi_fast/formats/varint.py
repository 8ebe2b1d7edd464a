"""Numbers of variable length, as Avro, Protocol Buffers, Thrift and Kryo write them."""

from __future__ import annotations

__all__ = ["varint", "zigzag"]


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
