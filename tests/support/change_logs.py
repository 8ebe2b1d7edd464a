"""What the change logs of a table say, decoded by fastavro, and what they ought to say: writes replayed on a dict."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

from hudi_fast.formats.log.blocks import BlockType, HeaderKey, scan_log_blocks
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.table_state import commits_newest_first, load_state

__all__ = ["Replay", "change_logs", "entries_of", "logged", "stats_by_instant"]

Row = dict[str, Any]
Change = tuple[str, Row | None, Row | None]


@dataclass
class Replay:
    """A table as a dict: what each write changes, by ordering value ``ts``.

    Attributes:
        rows: what is stored, by key.
        changes: of the newest write: operation, row before, row after.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    def upsert(self, table: pa.Table) -> list[Change]:
        """Rows as an upsert brings them; ``_hoodie_is_deleted`` deletes."""
        self.changes = []
        for row in table.to_pylist():
            self._bring(row["id"], row, bool(row.get("_hoodie_is_deleted")))
        return self.changes

    def delete(self, keys: Iterable[str]) -> list[Change]:
        """Keys that go, whatever was stored."""
        self.changes = [("d", self.rows.pop(key), None) for key in keys if key in self.rows]
        return self.changes

    def _bring(self, key: str, row: Row, deletes: bool) -> None:
        old = self.rows.get(key)
        if old is not None and row["ts"] < old["ts"]:
            return
        if deletes:
            if old is not None:
                self.changes.append(("d", self.rows.pop(key), None))
            return
        self.changes.append(("u" if old else "i", old, row))
        self.rows[key] = row


def change_logs(path: Path) -> list[Path]:
    """Change logs of the data table, by name."""
    found = [each for each in path.rglob(".*.cdc") if ".hoodie" not in each.relative_to(path).parts]
    return sorted(found, key=lambda each: each.name)


def entries_of(path: Path, log: str) -> list[list[Row]]:
    """The entries of each block of a change log (``log`` relative to the table)."""
    data, blocks = (path / log).read_bytes(), []
    for block in scan_log_blocks(Storage(str(path)), log):
        assert block.kind is BlockType.CDC_DATA
        assert block.headers[HeaderKey.INSTANT_TIME] in log
        schema = fastavro.parse_schema(json.loads(block.headers[HeaderKey.SCHEMA]))
        source = io.BytesIO(data[block.content_start : block.content_start + block.content_length])
        version, count = (int.from_bytes(source.read(4), "big") for _ in range(2))
        assert version == 3
        rows = []
        for _ in range(count):
            length = int.from_bytes(source.read(4), "big")
            record = io.BytesIO(source.read(length))
            rows.append(fastavro.schemaless_reader(record, schema, None))
            assert record.tell() == length
        assert source.read() == b""
        blocks.append(rows)
    return blocks


def logged(path: Path, instant: str) -> list[Row]:
    """All entries that the commit of that requested time names, its change logs checked against its write stats."""
    found = []
    for stat in stats_by_instant(path)[instant]:
        for log, size in (stat.cdc_stats or {}).items():
            assert (path / log).stat().st_size == size
            base = stat.path.rpartition("/")[2].removesuffix(".parquet")
            token = base.split("_")[1]
            assert log.rpartition("/")[2].startswith(f".{stat.file_id}_{instant}.log.")
            assert log.endswith(f"_{token}.cdc")
            found += [entry for block in entries_of(path, log) for entry in block]
    return found


def stats_by_instant(path: Path) -> dict[str, list[WriteStat]]:
    """Write stats of completed commits, oldest first, by requested time."""
    commits = list(commits_newest_first(load_state(Storage(str(path)))))
    return {instant.requested: list(metadata.write_stats()) for instant, metadata in reversed(commits)}
