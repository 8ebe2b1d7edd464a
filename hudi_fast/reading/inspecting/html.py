"""The HTML display of a table in notebooks: properties, newest instants, files by partition; plain HTML, all escaped.

Cheap enough for accidental display at the end of a cell: one listing of files, bodies of a few instants, no footers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import HudiError
from hudi_fast.metadata_table.state import open_state
from hudi_fast.reading.inspecting.history import history_table
from hudi_fast.reading.inspecting.results import html_table
from hudi_fast.reading.inspecting.table import current_slices
from hudi_fast.reading.inspecting.words import duration_text, size_text
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState

__all__ = ["table_html"]

_INSTANTS = 10
_PARTITIONS = 10
_LEFT = ("", "instant", "partition")


def table_html(storage: Storage) -> str:
    """The table as HTML; for a table that cannot be opened, the error."""
    try:
        state = open_state(storage)
        slices = current_slices(state)
        parts = [_summary(state, slices), _history(state), _partitions(slices)]
    except (HudiError, OSError) as error:
        parts = [f"<p>{escape(str(error) or type(error).__name__)}</p>"]
    return f"<div><b>HudiTable</b> <code>{escape(storage.uri)}</code>{''.join(parts)}</div>"


def _summary(state: TableState, slices: Sequence[FileSlice]) -> str:
    config, timeline = state.config, state.timeline
    last = timeline.last_completed_write
    rows = [
        ("name", config.name),
        ("type", f"{config.table_type}, version {config.version}"),
        ("record key", ", ".join(config.record_key_fields) or "generated"),
        ("partitioned by", ", ".join(config.partition_fields) or "nothing"),
        ("files", f"{len(slices):,} file groups, {size_text(sum(map(_bytes, slices)))}"),
        ("instants", _instants(timeline)),
        ("last write", "none" if last is None else last.requested),
        ("indexes", _indexes(config)),
    ]
    return html_table(("", ""), rows, "")


def _instants(timeline: Timeline) -> str:
    pending = len(timeline.pending())
    return f"{len(timeline.instants):,} on the active timeline" + (f", {pending:,} pending" if pending else "")


def _indexes(config: TableConfig) -> str:
    return ", ".join(config.metadata_partitions) or "none"


def _history(state: TableState) -> str:
    newest = state.timeline.instants[-_INSTANTS:]
    if not newest:
        return ""
    history = history_table(state.storage, state.config, state.timeline, newest[0].requested)
    rows = [_history_row(row) for row in reversed(history.slice(max(0, history.num_rows - _INSTANTS)).to_pylist())]
    heads = ("instant", "action", "state", "operation", "took", "inserts", "updates", "deletes", "files", "bytes")
    return html_table(heads, rows, "Newest instants", _LEFT)


def _history_row(row: Mapping[str, object]) -> tuple[str, ...]:
    took, size = row["duration_ms"], row["bytes"]
    counts = [row[name] for name in ("inserts", "updates", "deletes", "files")]
    return (
        str(row["instant"]),
        str(row["action"]),
        str(row["state"]),
        str(row["operation"] or ""),
        duration_text(took / 1000) if isinstance(took, int) else "",
        *(f"{count:,}" if isinstance(count, int) else "" for count in counts),
        size_text(size) if isinstance(size, int) else "",
    )


def _partitions(slices: Sequence[FileSlice]) -> str:
    grouped: dict[str, list[FileSlice]] = {}
    for one in slices:
        grouped.setdefault(one.partition, []).append(one)
    if not grouped:
        return ""
    ranked = sorted(grouped.items(), key=lambda one: (-sum(map(_bytes, one[1])), one[0]))
    rows = [_partition_row(name or "(none)", found) for name, found in ranked[:_PARTITIONS]]
    rest = [one for _, found in ranked[_PARTITIONS:] for one in found]
    if rest:
        rows.append(_partition_row(f"{len(ranked) - _PARTITIONS:,} others", rest))
    heads = ("partition", "file groups", "bytes", "log files", "bytes of logs")
    return html_table(heads, rows, f"Files by partition ({len(ranked):,})", _LEFT)


def _partition_row(name: str, slices: Sequence[FileSlice]) -> tuple[str, ...]:
    logs = [log for one in slices for log in one.log_files]
    log_bytes = size_text(sum(log.size for log in logs))
    return name, f"{len(slices):,}", size_text(sum(map(_bytes, slices))), f"{len(logs):,}", log_bytes


def _bytes(one: FileSlice) -> int:
    return sum(file.size for file in one.files)
