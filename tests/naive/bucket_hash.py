"""Which values of a record key are hashed, from the words of ``KeyGenUtils.extractRecordKeysByFields``."""

from __future__ import annotations

import xxhash

from tests.naive import java_hash


def hashed_values(key: str, fields: list[str]) -> list[str | None]:
    """Hudi 1.x: ``f1:v1,f2:v2`` if there is a comma and a colon; a value ends at the last comma before a colon."""
    if "," not in key or ":" not in key:
        return [key]
    found: list[str | None] = []
    rest = key
    while rest:
        name, _, rest = rest.partition(":")
        pieces = rest.split(":")
        value, rest = rest, ""
        for count in range(1, len(pieces)):
            before = ":".join(pieces[:count])
            if "," in before:
                value = before.rpartition(",")[0]
                rest = ":".join(pieces)[len(value) + 1 :]
                break
        if name in fields:
            found.append(_meant(value))
    return found or [key]


def hashed_values_of_old(key: str, fields: list[str]) -> list[str | None]:
    """Hudi 0.x: if there is a colon; cut at every comma."""
    if ":" not in key:
        return [key]
    parts = [part.split(":", 1) for part in key.rstrip(",").split(",")]
    return [_meant(part[-1]) if len(part) == 2 else part[0] for part in parts if len(part) == 1 or part[0] in fields]


def list_hash(values: list[str | None]) -> int:
    return java_hash.list_hash([0 if value is None else java_hash.string_hash(value) for value in values])


def joined_hash(values: list[str | None]) -> int:
    text = "".join("null" if value is None else value for value in values)
    return xxhash.xxh32_intdigest(text.encode(), 0) & 0x7FFFFFFF


def _meant(value: str) -> str | None:
    return {"__null__": None, "__empty__": ""}.get(value, value)
