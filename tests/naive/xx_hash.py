"""xxHash32 and xxHash64 from their specification, in whole numbers."""

from __future__ import annotations

PRIMES_32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
PRIMES_64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def _turn(value: int, by: int, bits: int) -> int:
    value %= 1 << bits
    return (value << by | value >> (bits - by)) % (1 << bits)


def _words(data: bytes, size: int) -> list[int]:
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data) - size + 1, size)]


def xx_hash32(data: bytes, seed: int) -> int:
    a, b, c, d, e = PRIMES_32
    whole = len(data) // 16 * 16
    code = seed + e
    if whole:
        lanes = [seed + a + b, seed + b, seed, seed - a]
        for place, word in enumerate(_words(data[:whole], 4)):
            lanes[place % 4] = _turn(lanes[place % 4] + word * b, 13, 32) * a
        code = sum(_turn(lane, by, 32) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
    code += len(data)
    rest = data[whole:]
    for word in _words(rest, 4):
        code = _turn(code + word * c, 17, 32) * d
    for byte in rest[len(rest) // 4 * 4 :]:
        code = _turn(code + byte * e, 11, 32) * a
    code %= 1 << 32
    code = (code ^ code >> 15) * b % (1 << 32)
    code = (code ^ code >> 13) * c % (1 << 32)
    return code ^ code >> 16


def xx_hash64(data: bytes, seed: int) -> int:
    a, b, c, d, e = PRIMES_64

    def mixed(lane: int, word: int) -> int:
        return _turn(lane + word * b, 31, 64) * a % (1 << 64)

    whole = len(data) // 32 * 32
    code = seed + e
    if whole:
        lanes = [seed + a + b, seed + b, seed, seed - a]
        for place, word in enumerate(_words(data[:whole], 8)):
            lanes[place % 4] = mixed(lanes[place % 4], word)
        code = sum(_turn(lane, by, 64) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            code = (code % (1 << 64) ^ mixed(0, lane)) * a + d
    code += len(data)
    rest = data[whole:]
    for word in _words(rest, 8):
        code = _turn(code % (1 << 64) ^ mixed(0, word), 27, 64) * a + d
    rest = rest[len(rest) // 8 * 8 :]
    for word in _words(rest, 4):
        code = _turn(code % (1 << 64) ^ word * a % (1 << 64), 23, 64) * b + c
    for byte in rest[len(rest) // 4 * 4 :]:
        code = _turn(code % (1 << 64) ^ byte * e % (1 << 64), 11, 64) * a
    code %= 1 << 64
    code = (code ^ code >> 33) * b % (1 << 64)
    code = (code ^ code >> 29) * c % (1 << 64)
    return code ^ code >> 32
