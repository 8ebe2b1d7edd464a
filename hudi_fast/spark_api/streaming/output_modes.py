"""The effect of a batch of a stream on the table, by output mode.

::

    append      the operation of the options, an upsert by default
    update      an upsert: the rows of an aggregation that changed
    complete    insert_overwrite_table: the batch replaces all rows, in one replace commit
    overwrite   the save mode: the batch replaces the table with a new one

``complete`` keeps the table, its history and its earlier file slices: readers of the batch before are not disturbed,
and a replace commit is as atomic in an object store as in a folder. Apache Hudi's sink deletes the table for every
batch of ``complete`` and of ``update`` (``HoodieStreamingSink``, 1.2.0), which loses the rows that an ``update`` does
not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_fast.config.options import find_option
from hudi_fast.errors import ConfigError

__all__ = ["SINK_MODES", "STATEFUL_MODES", "save_mode_of", "with_output_mode"]

SINK_MODES = ("append", "update", "complete", "overwrite")
"""Modes of a sink: Spark's output modes, and the save mode ``overwrite``."""

STATEFUL_MODES = ("update", "complete")
"""Modes of queries whose state Spark stores while the rows of a batch are evaluated."""

_OPERATION = "hoodie.datasource.write.operation"
_KEY = "hoodie.datasource.write.recordkey.field"
_COMBINE = "hoodie.combine.before.insert"
_REPLACING = "insert_overwrite_table"
_ALLOWED = {
    "update": ("upsert",),
    "complete": ("upsert", "insert", "bulk_insert", _REPLACING),
}


def with_output_mode(options: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """The options of the write of every batch.

    Args:
        options: of the sink.
        mode: one of :data:`SINK_MODES`.

    Raises:
        ConfigError: an unknown mode, or one that the operation of the options contradicts.
    """
    if mode not in SINK_MODES:
        raise ConfigError(f"A stream writes with one of the modes {', '.join(SINK_MODES)}; got {mode!r}.")
    allowed = _ALLOWED.get(mode)
    if allowed is None:
        return dict(options)
    operation = str(_given(options, _OPERATION) or "upsert").lower()
    if operation not in allowed:
        raise ConfigError(
            f"{_OPERATION}={operation} contradicts the output mode {mode}: its batches are written by "
            f"{'an upsert' if mode == 'update' else _REPLACING}. Leave the option out, or use the output mode append."
        )
    rest = {key: value for key, value in options.items() if not _is(key, _OPERATION)}
    if mode == "update":
        return {**rest, _OPERATION: "upsert"}
    merges = operation == "upsert" and _given(options, _KEY) is not None and _given(options, _COMBINE) is None
    return {**rest, _OPERATION: _REPLACING, **({_COMBINE: "true"} if merges else {})}


def save_mode_of(mode: str) -> str:
    """The save mode of every batch."""
    return "overwrite" if mode == "overwrite" else "append"


def _given(options: Mapping[str, Any], key: str) -> Any:
    """The value of an option in any spelling; None where it is not given."""
    return next((value for name, value in options.items() if _is(name, key)), None)


def _is(name: str, key: str) -> bool:
    option = find_option(name)
    return option is not None and option.key == key
