"""Partition paths as text: escaping of values, hive-style prefixes, and parsing for pruning.

::

    values ──encode──► parts ──hive_part──► name=part ──join──► "a=1/b=x%2Fy"
    {"a": "1", "b": "x/y"}  ◄──partition_values──┘

A partition path becomes a folder below the table. :func:`path_fault` rejects paths that leave the table, name its
metadata folder, or are changed by file systems (``.``, ``..``, empty parts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hudi_fast.config.table_config import TableConfig

__all__ = [
    "DEFAULT_PARTITION",
    "OLD_DEFAULT_PARTITION",
    "decode",
    "encode",
    "hive_part",
    "join",
    "partition_values",
    "path_fault",
    "reads_hive_style",
    "stored_values",
]

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Partition value of null and empty text."""
OLD_DEFAULT_PARTITION = "default"
"""The same value before table version 5 (``PartitionPathEncodeUtils.DEPRECATED_DEFAULT_PARTITION_PATH``)."""

_FIRST_WITH_HIVE_DEFAULT = 5
_STYLE_KEY = "hoodie.datasource.write.hive_style_partitioning"

_ESCAPED = [*range(0x20), *map(ord, "\"#%'*/:=?\\{[]^"), 0x7F]
_ESCAPES = {code: f"%{code:02X}" for code in _ESCAPED}
_HEX = re.compile("%([0-9a-fA-F]{2})")


def encode(value: str) -> str:
    """Escape the characters in ``value`` that Hive escapes in folder names as ``%XX``; keep all others, even non-ASCII.

    Source: Hudi's ``PartitionPathEncodeUtils.escapePathName``.
    """
    return value.translate(_ESCAPES)


def decode(part: str) -> str:
    """Undo :func:`encode`; a ``%`` without two hex digits after it is kept."""
    return _HEX.sub(lambda match: chr(int(match.group(1), 16)), part) if "%" in part else part


def hive_part(field: str, part: str) -> str:
    """``field=part``: one level of a hive-style path."""
    return f"{field}={part}"


def join(parts: Iterable[str]) -> str:
    """Join ``parts`` into a partition path; ``""`` without parts."""
    return "/".join(parts)


def path_fault(path: str) -> str | None:
    """The reason why ``path`` must not become a folder of a table; None if it is valid.

    ``""``, the path of a table without partitions, is valid.
    """
    if not path:
        return None
    if "\0" in path:
        return "holds a NUL character"
    parts = path.split("/")
    if not parts[0]:
        return "starts with a slash"
    if "" in parts:
        return "holds an empty part (two slashes in a row, or one at the end)"
    if "." in parts or ".." in parts:
        return "holds a part '.' or '..'"
    if parts[0] == ".hoodie":
        return "names the table's metadata folder"
    return None


def reads_hive_style(path: str, fields: Sequence[str]) -> bool:
    """Whether each part of a partition path begins with the name of its field and ``=``."""
    parts = path.split("/") if path else []
    return len(parts) == len(fields) and all(
        part.startswith(f"{field}=") for field, part in zip(fields, parts, strict=True)
    )


def stored_values(path: str, config: TableConfig) -> dict[str, str | None] | None:
    """:func:`partition_values` with the settings of a table.

    Properties of table version 2 do not contain the path style, so it is inferred from each path. Before version 5 the
    part ``default`` means null, or this text.

    Args:
        path: a partition path.
        config: of the table.
    """
    fields = config.partition_fields
    return partition_values(
        path,
        fields,
        config.hive_style or (_STYLE_KEY not in config.raw and reads_hive_style(path, fields)),
        config.url_encode,
        OLD_DEFAULT_PARTITION if config.version < _FIRST_WITH_HIVE_DEFAULT else DEFAULT_PARTITION,
    )


def partition_values(
    path: str,
    fields: Sequence[str],
    hive_style: bool,
    url_encode: bool,
    null_partition: str = DEFAULT_PARTITION,
) -> dict[str, str | None] | None:
    """The text of each partition field in ``path``.

    Args:
        path: a partition path.
        fields: the partition fields, in the table's order.
        hive_style: whether parts are ``field=value``.
        url_encode: whether values are escaped.
        null_partition: the part that represents null.

    Returns:
        Text by field; a text of None means null **or the empty string**, which share a folder. None if the path does
        not have one part per field, so that its values are unknown. The text is the column's value only for fields of
        type SIMPLE: the path of a TIMESTAMP field holds the formatted time.
    """
    parts = path.split("/") if path else []
    if len(parts) != len(fields):
        return None
    values: dict[str, str | None] = {}
    for field, part in zip(fields, parts, strict=True):
        text = part
        if hive_style:
            name, equals, text = part.partition("=")
            if not equals or name != field:
                return None
        if text == null_partition:
            values[field] = None
        else:
            values[field] = decode(text) if url_encode else text
    return values
