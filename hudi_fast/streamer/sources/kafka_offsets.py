"""Offsets of a topic: their text, and which messages a turn reads.

::

    "topic,0:120,1:98" ─ parse ─► {0: 120, 1: 98} ─ first_offsets ─► where to begin ─ ranges ─► {0: (120, 170), ...}

Source: ``KafkaOffsetGen.CheckpointUtils`` (1.2.0), whose text this is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hudi_fast.errors import ConfigError

__all__ = ["Ranges", "offsets_of", "position_of", "shared_out"]

Ranges = dict[int, tuple[int, int]]
"""First offset and offset after the last one, by partition."""

_TEXT = re.compile(r"(.+?)((?:,\d+:\d+)+)")


def offsets_of(position: str, topic: str) -> dict[int, int]:
    """Offsets by partition.

    Args:
        position: such as ``trips,0:120,1:98``.
        topic: that the stream reads.

    Raises:
        ConfigError: it is no such text, or of another topic.
    """
    match = _TEXT.fullmatch(position.strip())
    if match is None:
        raise ConfigError(
            f"The position {position!r} is not one of a Kafka topic, such as '{topic},0:120,1:98'. Give the option "
            "ignore.checkpoint if the source has changed."
        )
    if match[1] != topic:
        raise ConfigError(
            f"The position {position!r} is one of the topic {match[1]!r}; the stream reads {topic!r}. Give the option "
            "ignore.checkpoint to begin with the new topic."
        )
    pairs = (pair.split(":") for pair in match[2].strip(",").split(","))
    return {int(partition): int(offset) for partition, offset in pairs}


def position_of(topic: str, offsets: Mapping[int, int]) -> str:
    """The text of offsets, in the order of partitions."""
    return ",".join([topic, *(f"{partition}:{offsets[partition]}" for partition in sorted(offsets))])


def shared_out(first: Mapping[int, int], last: Mapping[int, int], limit: int) -> Ranges:
    """The messages of a turn: as many from each partition as possible, until the limit is reached.

    Args:
        first: offset to begin with, by partition.
        last: offset after the newest message, by partition.
        limit: most messages of all partitions together.
    """
    left = {one: max(0, last[one] - first[one]) for one in sorted(last)}
    taken, rest = dict.fromkeys(left, 0), min(limit, sum(left.values()))
    while rest:
        waiting = [one for one in left if taken[one] < left[one]]
        share = max(1, rest // len(waiting))
        for one in waiting:
            more = min(share, left[one] - taken[one], rest)
            taken[one], rest = taken[one] + more, rest - more
    return {one: (first[one], first[one] + taken[one]) for one in left}
