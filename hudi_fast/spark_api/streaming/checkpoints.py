"""Batch numbers of streams, stored in commits.

::

    batch ─► checkpoint_metadata ─► extra metadata of its commit
    timeline, newest commit first ─► archived timeline ─► find_checkpoint ─► Checkpoint

A commit and the number of its batch become visible together, which gives exactly-once writes. Key and value are Apache
Hudi's, so either library can continue a stream of the other. A second key stores the query id: batch numbers of queries
with different checkpoint locations are not comparable.

Sources: ``HoodieStreamingSink.SINK_CHECKPOINT_KEY``, ``CommitUtils.getValidCheckpointForCurrentWriter`` (1.2.0).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.stored_json import stored_json
from hudi_fast.timeline.active import Timeline
from hudi_fast.timeline.archive.newest import newest_stored
from hudi_fast.timeline.commit_metadata import decode_commit_metadata

__all__ = ["CHECKPOINT_KEY", "QUERY_KEY", "Checkpoint", "checkpoint_metadata", "find_checkpoint"]

CHECKPOINT_KEY = "_hudi_streaming_sink_checkpoint"
QUERY_KEY = "_hudi_fast_streaming_query"
"""Keys of extra commit metadata: checkpoints of sinks, as Apache Hudi writes them, and the streaming query."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The newest batch of a stream that a table holds.

    Attributes:
        batch: its number.
        query: id of the query that wrote it; None where Apache Hudi wrote it, or the query is not known.
    """

    batch: int
    query: str | None = None


def checkpoint_metadata(identifier: str, batch: int, query: str | None) -> dict[str, str]:
    """Extra commit metadata for a batch.

    Args:
        identifier: name of the stream.
        batch: its number.
        query: id of the query; None where it is not known.
    """
    metadata = {CHECKPOINT_KEY: json.dumps({identifier: str(batch)}, separators=(",", ":"))}
    return metadata if query is None else {**metadata, QUERY_KEY: query}


def find_checkpoint(
    storage: Storage, config: TableConfig, timeline: Timeline, identifier: str, after: str | None = None
) -> Checkpoint | None:
    """The newest batch recorded in the table's commits.

    Ignores commits of services, of other writers and of streams with other names. Searches the archived timeline if the
    active one records no batch.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: its active timeline.
        identifier: name of the stream.
        after: search only commits that completed later, and not the archived timeline; None to search all.

    Raises:
        CorruptTableError: a commit, or its checkpoint, cannot be read.
    """

    def takes(instant: Any) -> bool:
        return after is None or (instant.completion or "") > after

    find = partial(_checkpoint_in, identifier)
    return newest_stored(storage, config, timeline, find, takes, archive=after is None)


def _checkpoint_in(identifier: str, body: bytes, path: str) -> Checkpoint | None:
    if CHECKPOINT_KEY.encode() not in body:  # true for most commits: they need no decoding
        return None
    extra = decode_commit_metadata(body, path).extra_metadata
    if not extra.get(CHECKPOINT_KEY):
        return None
    try:
        batch = stored_json(extra[CHECKPOINT_KEY]).get(identifier)
        return None if batch is None else Checkpoint(int(batch), extra.get(QUERY_KEY))
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptTableError(
            f"The commit has {CHECKPOINT_KEY}={extra[CHECKPOINT_KEY]!r}; expected JSON that maps names of streams to "
            "numbers of batches.",
            path,
        ) from error
