"""Merging one record after the other, in plain Python: Hudi's rules as a person would read them.

A version of a key is a dict: ``row`` (column -> value, None for a deleted key), ``ordering`` (tuple of values, None
where null), ``default`` (the ordering value is Hudi's default), ``bare`` (a key of a delete block), ``columns`` (names
that a partial row brings, None for all), ``number`` (when it came). No arrays, no shortcuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

Version = dict[str, Any]
Row = dict[str, Any]

META = {"_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key"}


@dataclass
class NaiveRules:
    """What decides: ``compares`` against stored rows, ``orders`` within the log; how rows blend."""

    compares: bool = False
    orders: bool = False
    zero_is_default_kind: bool = False  # a 32-bit column, whose values are of the kind that the default is
    partial_mode: str | None = None
    unavailable: str | None = None
    same_ordering_updates: bool = True
    bare_yields: bool = False
    partial_payload: bool = False
    defaults: dict[str, Any] = field(default_factory=dict)
    merger: Callable[[Row, Row], Row | None] | None = None


def is_delete(version: Version) -> bool:
    return version["row"] is None


def is_commit_time_delete(rules: NaiveRules, version: Version) -> bool:
    return is_delete(version) and (version["default"] or rules.partial_payload or rules.merger is not None)


def filled(ordering: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(0 if value is None else value for value in ordering)


def same_kind(rules: NaiveRules, one: Version, other: Version) -> bool:
    if one.get("mismatched") or other.get("mismatched"):
        return False
    if rules.zero_is_default_kind:
        return True
    return all((a is None) == (b is None) for a, b in zip(one["ordering"], other["ordering"], strict=True))


def newer_wins_in_log(rules: NaiveRules, old: Version, new: Version) -> bool:
    if is_commit_time_delete(rules, old):
        return not new["bare"]
    if is_commit_time_delete(rules, new):
        return True
    if not rules.orders:
        return True
    if new["bare"]:
        return not (same_kind(rules, old, new) and filled(old["ordering"]) > filled(new["ordering"]))
    if old.get("mismatched") or new.get("mismatched"):
        return True
    if rules.partial_payload and not same_kind(rules, old, new):
        return True
    if rules.bare_yields and old["bare"]:
        return True
    return filled(new["ordering"]) >= filled(old["ordering"])


def newer_wins_over_stored(rules: NaiveRules, old: Version, new: Version) -> bool:
    if not rules.compares or is_commit_time_delete(rules, new) or new.get("mismatched"):
        return True
    if rules.partial_payload and not same_kind(rules, old, new):
        return True
    if rules.same_ordering_updates or rules.partial_payload:
        return filled(new["ordering"]) >= filled(old["ordering"])
    return filled(new["ordering"]) > filled(old["ordering"])


def says_nothing(rules: NaiveRules, name: str, value: Any) -> bool:
    if rules.partial_mode == "IGNORE_DEFAULTS":
        default = None if rules.partial_payload else rules.defaults.get(name)
        return bool(value == default)
    if rules.partial_mode == "FILL_UNAVAILABLE":
        return rules.unavailable is not None and value == rules.unavailable
    return False


def blended(rules: NaiveRules, high: Version, low: Version, newer: Version, partial: bool) -> Version:
    """The winner with columns of the loser."""
    row: Row = {}
    columns = None
    if partial:
        for name in high["row"]:
            high_has = name in META or high["columns"] is None or name in high["columns"]
            row[name] = high["row"][name] if high_has else low["row"][name]
        if high["columns"] is not None and low["columns"] is not None:
            columns = high["columns"] | low["columns"]
    else:
        for name, value in high["row"].items():
            if name in META:
                row[name] = newer["row"][name] if rules.partial_payload else value
            else:
                row[name] = low["row"][name] if says_nothing(rules, name, value) else value
    return {**high, "row": row, "columns": columns}


def merge_two(rules: NaiveRules, old: Version, new: Version, wins: bool, partial: bool) -> Version:
    if rules.merger is not None:
        if is_delete(old) or is_delete(new):
            return new
        row = rules.merger(
            {name: value for name, value in old["row"].items() if name not in META},
            {name: value for name, value in new["row"].items() if name not in META},
        )
        meta = {name: value for name, value in new["row"].items() if name in META}
        return {**new, "row": None if row is None else {**meta, **row}}
    high, low = (new, old) if wins else (old, new)
    if is_delete(high) or is_delete(low) or (rules.partial_mode is None and not partial):
        return high
    return blended(rules, high, low, new, partial)


def naive_fold(rules: NaiveRules, versions: Iterable[Version]) -> dict[str, Version]:
    """Log against log; ``versions`` have a ``key``."""
    versions = list(versions)
    partial = any(version["columns"] is not None for version in versions)
    state: dict[str, Version] = {}
    for new in versions:
        old = state.get(new["key"])
        if old is None:
            state[new["key"]] = new
        else:
            state[new["key"]] = merge_two(rules, old, new, newer_wins_in_log(rules, old, new), partial)
    return state


def naive_slice(rules: NaiveRules, stored: list[Version], versions: Iterable[Version]) -> list[Row]:
    """Rows of the base file after the log, in file order, then rows of the log alone in any order."""
    versions = list(versions)
    folded = naive_fold(rules, versions)
    partial = any(version["columns"] is not None for version in versions)
    rows = []
    for old in stored:
        new = folded.pop(old["key"], None)
        if new is None:
            rows.append(old["row"])
            continue
        merged = merge_two(rules, old, new, newer_wins_over_stored(rules, old, new), partial)
        if not is_delete(merged):
            rows.append(merged["row"])
    return rows + [new["row"] for new in folded.values() if not is_delete(new)]
