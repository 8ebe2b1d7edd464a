"""All that a Hive metastore holds of a database, as plain values that two databases can be compared by."""

from __future__ import annotations

from typing import Any

from hudi_fast.hive.client import HiveClient, hive_module

__all__ = ["database_entries", "differences", "entries_at"]

VOLATILE = ("createTime", "lastAccessTime", "dbName", "transient_lastDdlTime")
"""Attributes that differ between two tables that were made alike, one after the other."""


def entries_at(port: int, database: str) -> dict[str, dict[str, Any]]:
    """:func:`database_entries` of the metastore at a port."""
    client = HiveClient([("127.0.0.1", port)], 30)
    try:
        return database_entries(client, database)
    finally:
        client.close()


def database_entries(client: HiveClient, database: str) -> dict[str, dict[str, Any]]:
    """By table name: every attribute of its Thrift struct, and of each of its partitions by name."""
    found = {}
    for name in client.call("get_all_tables", database):
        table = client.call("get_table", database, name)
        names = client.call("get_partition_names", database, name, -1)
        partitions = client.call("get_partitions_by_names", database, name, names) if names else []
        found[name] = {"table": _plain(table), "partitions": sorted((_plain(one) for one in partitions), key=str)}
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in sorted(value.items()) if key not in VOLATILE}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if type(value).__module__ == hive_module().__name__ and hasattr(value, "__dict__"):
        return {key: _plain(one) for key, one in vars(value).items() if key not in VOLATILE}
    return value


def differences(left: Any, right: Any, place: str = "") -> list[str]:
    """Where two values of :func:`database_entries` differ, one line each."""
    if isinstance(left, dict) and isinstance(right, dict):
        keys = sorted({*left, *right})
        return [line for key in keys for line in differences(left.get(key), right.get(key), f"{place}/{key}")]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        both = enumerate(zip(left, right, strict=True))
        return [line for number, (one, other) in both for line in differences(one, other, f"{place}/{number}")]
    return [] if left == right else [f"{place}: {left!r} and {right!r}"]
