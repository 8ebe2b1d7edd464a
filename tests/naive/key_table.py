"""Key look-up and picking of winners with dicts."""

from __future__ import annotations


def probe(build: list[bytes], keys: list[bytes]) -> list[int]:
    first: dict[bytes, int] = {}
    for row, key in enumerate(build):
        first.setdefault(key, row)
    return [first.get(key, -1) for key in keys]


def winners(identities: list[object], rank: list[int]) -> list[int]:
    best: dict[object, int] = {}
    for row, identity in enumerate(identities):
        if identity not in best or rank[row] >= rank[best[identity]]:
            best[identity] = row
    return sorted(best.values())
