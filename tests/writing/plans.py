"""Plans of writes that are not executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.metadata_table.state import open_state
from hudi_fast.storage.base import Storage
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.prepare import prepare_rows
from hudi_fast.writing.write_plan import Incoming, TaskToken, WritePlan

__all__ = ["INSTANT", "TOKEN", "drafted"]

INSTANT = "99980101000000000"
TOKEN = TaskToken(0, 1, 2)


def drafted(path: Path, rows: pa.Table, options: Mapping[str, Any]) -> tuple[WritePlan, Incoming]:
    """The plan of a write of rows to an existing table, and the rows as it takes them."""
    plan = draft_plan(open_state(Storage(path)), WriteOptions.from_options(options), rows.schema)
    plan = replace(plan, instant=INSTANT)
    return plan, prepare_rows(plan, rows)
