"""The error table of a stream: what could not be read, with its place and the reason, in a table of its own.

It is written before the turn that leaves these messages out. A turn that is repeated replaces its errors, whose key is
the place of the message, so each is there once.

Source: ``HoodieErrorTableConfig``, ``BaseErrorTableWriter`` (1.2.0), whose keys these are. There the writer is a class
of the user; the columns here are this library's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from hudi_fast.api import write
from hudi_fast.errors import ConfigError
from hudi_fast.streamer.messages import Rejected
from hudi_fast.streamer.places import open_place
from hudi_fast.streamer.settings import ERRORS_PREFIX, StreamSettings, truth

__all__ = ["ErrorTable", "open_error_table"]

_PATH, _NAME, _ENABLE = "base.path", "target.table.name", "enable"
_SCHEMA = pa.schema(
    [
        pa.field("place", pa.string(), False),
        ("reason", pa.string()),
        ("value", pa.binary()),
        ("seen", pa.timestamp("us", "UTC")),
    ]
)


class ErrorTable:
    """Collects what one turn leaves out, and writes it.

    Args:
        path: of the table; it is created when there is something to write.
        name: of the table.
        storage_options: how to reach it.
    """

    def __init__(self, path: str, name: str, storage_options: Mapping[str, Any] | None) -> None:
        self._path, self._storage_options = path, storage_options
        self._options = {"hoodie.table.name": name, "hoodie.datasource.write.precombine.field": "seen"}
        self._rejected: list[Rejected] = []

    def begin(self) -> None:
        """Forget what a turn that was given up left out."""
        self._rejected = []

    def add(self, rejected: Sequence[Rejected]) -> None:
        """Note messages that a turn leaves out."""
        self._rejected += rejected

    def write(self) -> int:
        """Write the messages of the turn, each once; their number.

        Raises:
            HudiError: the table cannot be written.
        """
        rejected, self._rejected = self._rejected, []
        if rejected:
            rows = [{**one._asdict(), "seen": datetime.now(UTC)} for one in rejected]
            table = pa.Table.from_pylist(rows, _SCHEMA)
            write(table, self._path, self._options, storage_options=self._storage_options, key="place")
        return len(rejected)


def open_error_table(
    settings: StreamSettings, storage_options: Mapping[str, Any] | None, spark: Any = None
) -> ErrorTable | None:
    """The error table of a stream; None if it has none.

    Args:
        settings: of the streamer.
        storage_options: how to reach it.
        spark: the session of the stream, whose settings count without storage options; None without one.

    Raises:
        ConfigError: ``hoodie.errortable.enable`` is neither true nor false, or the table has no path.
    """
    if not truth(f"{ERRORS_PREFIX}{_ENABLE}", settings.errors.get(_ENABLE, "false")):
        return None
    path = settings.errors.get(_PATH, "")
    if not path:
        raise ConfigError(f"The error table needs the property {ERRORS_PREFIX}{_PATH}.")
    name = settings.errors.get(_NAME) or path.rstrip("/").rpartition("/")[2]
    return ErrorTable(path, name, open_place(spark, path, storage_options).options)
