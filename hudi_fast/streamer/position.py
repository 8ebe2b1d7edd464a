"""The position of a stream in its source, stored in the commits of the table.

::

    timeline, newest commit first ─► archived timeline ─► find_position ─► Position
    Position, the options checkpoint and ignore.checkpoint ─► start_of ─► where the next turn begins
    turn ─► position_metadata ─► extra metadata of its commit

Rows and the position after them become visible in one commit, so a turn is neither lost nor repeated. Keys and values
are Apache Hudi's: a table can move from HoodieStreamer to this library and back.

Sources: ``StreamerCheckpointUtils``, ``CheckpointUtils``, ``StreamerCheckpointV1`` and ``StreamerCheckpointV2``
(1.2.0).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.timeline import newest_stored
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.instants import Timeline
from hudi_fast.values import dataclass

__all__ = ["Position", "find_position", "position_metadata", "start_of"]

_IGNORE_KEY = "deltastreamer.checkpoint.ignore_key"
_COMPLETION_VERSION = 8
"""From this table version on, the second pair of keys is written."""


@dataclass(frozen=True, slots=True)
class _Keys:
    position: str
    reset: str
    ignored: str = _IGNORE_KEY


_V1 = _Keys("deltastreamer.checkpoint.key", "deltastreamer.checkpoint.reset_key")
_V2 = _Keys("streamer.checkpoint.key.v2", "streamer.checkpoint.reset.key.v2")
_OWN = "_hudi_fast_streamer."
_MARKS = b"streamer.checkpoint.", _OWN.encode()
"""Parts of all keys."""


@dataclass(frozen=True, slots=True)
class Position:
    """What the newest commit of a stream stores.

    Attributes:
        text: the position; None if the commit stores none.
        reset: the option ``checkpoint`` of that turn.
        ignored: the option ``ignore.checkpoint`` of that turn.
        by_completion: whether times of another Hudi table are completion times; otherwise requested times.
    """

    text: str | None
    reset: str | None = None
    ignored: str | None = None
    by_completion: bool = False


def find_position(
    storage: Storage, config: TableConfig, timeline: Timeline, name: str | None = None
) -> Position | None:
    """The position in the newest commit that has one; None if no commit of the table has one.

    Services and other writers store no position. Of a MERGE_ON_READ table only delta commits count, as for Apache Hudi,
    unless it has none: it was COPY_ON_WRITE before. Apache Hudi does not look into the archived timeline.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: its active timeline.
        name: of the stream, where several feed the table; None for that of Apache Hudi's keys.

    Raises:
        CorruptTableError: a commit cannot be read.
    """
    is_logged = any(one.action == "deltacommit" for one in timeline.writes())

    def takes(instant: Any) -> bool:
        return not is_logged or instant.action == "deltacommit"

    return newest_stored(storage, config, timeline, partial(_position_in, name), takes)


def _position_in(name: str | None, body: bytes, path: str) -> Position | None:
    if not any(mark in body for mark in _MARKS):  # true for commits of other writers: they need no decoding
        return None
    extra = decode_commit_metadata(body, path).extra_metadata
    for keys in (_V2, _V1) if name is None else (_named(name),):
        text, reset = extra.get(keys.position) or None, extra.get(keys.reset) or None
        if text is not None or reset is not None:
            return Position(text, reset, extra.get(keys.ignored) or None, keys is not _V1)
    return None


def _named(name: str) -> _Keys:
    prefix = f"{_OWN}{name}."
    return _Keys(f"{prefix}position", f"{prefix}reset", f"{prefix}ignored")


def start_of(found: Position | None, checkpoint: str | None, ignored: str | None, table: str) -> str | None:
    """Where the next turn begins; None: where the source begins without a position.

    Args:
        found: the position in the table.
        checkpoint: the option of that name. It counts once: not if the newest turn had the same.
        ignored: the option ``ignore.checkpoint``, which also counts once.
        table: path of the table, for the message.

    Raises:
        ConfigError: the newest turn was given a position and stored none.
    """
    if found is None:
        return checkpoint
    if ignored is not None and ignored != found.ignored:
        return None
    if checkpoint is not None and checkpoint != found.reset:
        return checkpoint
    if found.text is None:
        raise ConfigError(
            f"The newest turn of the stream into {table} began at {found.reset!r} and stored no position after it. "
            "Give --checkpoint with another value, or --ignore-checkpoint."
        )
    return found.text


def position_metadata(
    text: str | None, checkpoint: str | None, ignored: str | None, version: int, name: str | None = None
) -> dict[str, str]:
    """The extra metadata of a turn's commit.

    Args:
        text: the position after the turn.
        checkpoint: the option of that name.
        ignored: the option ``ignore.checkpoint``.
        version: of the table.
        name: of the stream, where several feed the table.
    """
    keys = _V2 if version >= _COMPLETION_VERSION else _V1
    keys = keys if name is None else _named(name)
    values = {keys.position: text, keys.reset: checkpoint, keys.ignored: ignored}
    return {key: value for key, value in values.items() if value is not None}
