"""Topics of a schema registry in tests: a row, a turn of a stream of a topic, and the rows of its table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hudi_fast as hf
from hudi_fast.streamer.streamer import Turn
from tests.servers.kafka import KafkaBroker

__all__ = ["rows_of", "trip", "turn_of"]


def trip(number: int, **more: Any) -> dict[str, Any]:
    """A row."""
    return {"id": f"k{number:05}", "part": "p0", "ts": number, **more}


def turn_of(
    kafka: KafkaBroker, topic: str, path: Path, source: str, given: Mapping[str, Any], **arguments: Any
) -> Turn:
    """One turn of a stream that inserts the messages of a topic, from the first one."""
    properties = {
        "bootstrap.servers": kafka.servers,
        "auto.offset.reset": "earliest",
        "hoodie.streamer.source.kafka.topic": topic,
        **given,
    }
    streamer = hf.Streamer(properties, source_class=source, target_base_path=str(path), op="INSERT", **arguments)
    try:
        return next(streamer.run())
    finally:
        streamer.close()


def rows_of(path: Path, *names: str) -> list[tuple[Any, ...]]:
    """The key and other columns of the rows, by key."""
    return [tuple(row.values()) for row in hf.read(path, columns=["id", *names]).sort_by("id").to_pylist()]
