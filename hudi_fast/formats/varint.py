"""Numbers of variable length, and protobuf messages of them.

Encode and decode numbers of variable length, as in Avro, Protocol Buffers, Thrift and Kryo.

Read and write protobuf messages of numbers and byte strings, the subset that HFiles, tails of ORC files and Hadoop's
file statuses use.

Source: HFile reference sections 1.8 and 1.9; the encoding is protobuf's own.
"""

from __future__ import annotations

__all__ = [
    "encode_message",
    "framed",
    "message_fields",
    "message_pairs",
    "read_varint",
    "snappy_size",
    "unframed",
    "varint",
    "zigzag",
]


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


_SHORT = [bytes([number]) for number in range(0x80)]
"""Numbers of one byte, which most are."""


def message_fields(message: memoryview) -> list[tuple[int, int | memoryview]]:
    """Field numbers and values in message order; numbers are signed 64-bit.

    Raises:
        ValueError: the message is malformed or has values of another kind.
    """
    fields: list[tuple[int, int | memoryview]] = []
    at, end = 0, len(message)
    while at < end:
        tag, at = (message[at], at + 1) if message[at] < 0x80 else read_varint(message, at)
        number, at = (message[at], at + 1) if at < end and message[at] < 0x80 else read_varint(message, at)
        if tag & 7 == 0:
            fields.append((tag >> 3, number if number < 1 << 63 else number - (1 << 64)))
        elif tag & 7 == 2:
            if number > end - at:
                raise ValueError(f"a value of {number} bytes where {end - at} are left")
            fields.append((tag >> 3, message[at : at + number]))
            at += number
        else:
            raise ValueError(f"a field with tag {tag}")
    return fields


def message_pairs(message: memoryview) -> dict[str, bytes]:
    """Values by name of a message whose field 1 repeats pairs of a name (1) and a value (2).

    Raises:
        ValueError: the message, or one of its pairs, is malformed.
    """
    found: dict[str, bytes] = {}
    for field, value in message_fields(message):
        if field == 1:
            parts = dict(message_fields(value)) if isinstance(value, memoryview) else {}
            name, content = parts.get(1), parts.get(2)
            if not isinstance(name, memoryview) or not isinstance(content, memoryview):
                raise ValueError("a pair without a name or a value")
            found[str(name, "utf-8")] = bytes(content)
    return found


def unframed(data: memoryview) -> memoryview:
    """The length-prefixed message at the beginning of ``data``.

    Raises:
        ValueError: the message does not end within ``data``.
    """
    length, at = (data[0], 1) if data[:1] and data[0] < 0x80 else read_varint(data, 0)
    if length > len(data) - at:
        raise ValueError(f"a message of {length} bytes where {len(data) - at} are left")
    return data[at : at + length]


def framed(message: bytes) -> bytes:
    """The message with its length prefix."""
    return _number(len(message)) + message


def encode_message(*fields: tuple[int, int | bytes | memoryview]) -> bytes:
    """A message of field numbers and values, in their order; numbers are -2^63 to 2^64 - 1."""
    parts: list[bytes | memoryview] = []
    for field, value in fields:
        if isinstance(value, int):
            parts += (_number(field << 3), _number(value % 2**64))
        else:
            parts += (_number(field << 3 | 2), _number(len(value)), value)
    return b"".join(parts)


def _number(value: int) -> bytes:
    return _SHORT[value] if value < 0x80 else varint(value)
