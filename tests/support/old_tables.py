"""Tables whose commits are some days old."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudi_fast as hf
from hudi_fast.timeline.instants import instant_from_ms
from hudi_fast.writing.flow import write_at
from tests.support.sessions import session_of

__all__ = ["DAYS", "days_ago", "write_days_ago"]

DAYS = "hoodie.partition.ttl.strategy.days.retain"


def days_ago(days: float) -> str:
    """The instant of a time in the past, in the local zone."""
    return instant_from_ms(int((time.time() - days * 86400) * 1000), "LOCAL")


def write_days_ago(rows: pa.Table, path: Path, options: Mapping[str, Any], days: float) -> str:
    """Write rows at a time in the past, which must be later than all instants of the table; returns the instant."""
    if not (path / ".hoodie").exists():
        hf.HudiTable.create(path, rows.schema, options)
    session = session_of(path, {**options, "hoodie.metadata.enable": "false"})
    return write_at(session, session.backend.engine(rows, session.settings.write), days_ago(days)).instant
