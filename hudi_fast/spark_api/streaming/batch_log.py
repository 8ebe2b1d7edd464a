"""The batches of a stream in its checkpoint location, in the layout of Spark's own checkpoints.

::

    metadata       {"id": "<query>"}                                  created with the stream
    offsets/<n>    v1, settings, end offset of batch n                created before the batch is delivered
    commits/<n>    v1, settings                                       created after it

The offset of a batch never changes: its file is created exclusively. A batch that has an offset and no commit is
delivered again, with the same begin and end. With the layout of Spark, ``spark.readStream`` continues the stream from
the same location, and the other way round.

Sources: ``OffsetSeqLog``, ``CommitLog``, ``StreamMetadata`` (Spark 3.5, 4.1).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_fast.errors import ConfigError, CorruptTableError
from hudi_fast.reading.incremental.stream import StreamOffset
from hudi_fast.storage.base import Storage
from hudi_fast.storage.stored_json import stored_json

__all__ = ["BatchLog", "LoggedBatch"]

_METADATA = "metadata"
_OFFSETS = "offsets"
_COMMITS = "commits"
_VERSION = "v1"
_KEPT = 100
"""Batches that are kept, as many as Spark keeps (``spark.sql.streaming.minBatchesToRetain``)."""


@dataclass(frozen=True, slots=True)
class LoggedBatch:
    """The newest batch of a stream.

    Attributes:
        number: of the batch; the first is 0.
        end: of the batch.
        before: end of the batch before it; None for the first.
        is_done: whether the batch was delivered.
    """

    number: int
    end: StreamOffset
    before: StreamOffset | None
    is_done: bool


class BatchLog:
    """The batches of one stream.

    Args:
        storage: the checkpoint location.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def open_query(self, folder: str) -> str:
        """The id of the stream's query; a new stream gets one.

        Args:
            folder: in the location, for the checkpoint of a query of Spark that gets the same id.

        Raises:
            UnsupportedFeatureError: the storage cannot create files exclusively.
            CorruptTableError: the stored id cannot be read.
        """
        self._storage.check_writable()
        self._create(_METADATA, json.dumps({"id": str(uuid.uuid4())}))
        self._create(f"{folder}/{_METADATA}", json.dumps({"id": self._id()}))
        return self._id()

    def newest(self) -> LoggedBatch | None:
        """The newest batch that has an offset; None for a new stream.

        Raises:
            CorruptTableError: an offset cannot be read, or the one before it is missing.
            ConfigError: the location belongs to another kind of stream.
        """
        names = [entry.name for entry in self._storage.list_dir(_OFFSETS) if not entry.is_dir]
        numbers = [int(name) for name in names if name.isdecimal()]
        if not numbers:
            return None
        number = max(numbers)
        before = self._offset(number - 1) if number else None
        return LoggedBatch(number, self._offset(number), before, self._storage.has_file(f"{_COMMITS}/{number}"))

    def begin(self, number: int, end: StreamOffset) -> None:
        """Store the offset of a batch, before it is delivered.

        Raises:
            ConfigError: another driver has stored one.
        """
        head = {"batchWatermarkMs": 0, "batchTimestampMs": int(time.time() * 1000), "conf": {}}
        if not self._create(f"{_OFFSETS}/{number}", _lines(_VERSION, head, end.stored())):
            raise ConfigError(
                f"Another driver has begun batch {number} of the stream whose checkpoint is {self._storage.uri}. Stop "
                "one of the two; each stream needs a checkpoint location of its own."
            )

    def finish(self, number: int) -> None:
        """Store that a batch was delivered; forget old batches."""
        self._create(f"{_COMMITS}/{number}", _lines(_VERSION, {"nextBatchWatermarkMs": 0}))
        old = number - _KEPT
        if old >= 0:
            paths = [f"{folder}/{name}" for folder in (_OFFSETS, _COMMITS) for name in (f"{old}", f".{old}.crc")]
            self._storage.delete_files(paths)

    def _id(self) -> str:
        try:
            return str(stored_json(self._storage.read_bytes(_METADATA).decode())["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptTableError(
                f"The metadata of the stream's checkpoint in {self._storage.uri} has no id.", _METADATA
            ) from error

    def _offset(self, number: int) -> StreamOffset:
        path = f"{_OFFSETS}/{number}"
        try:
            lines = self._storage.read_bytes(path).decode(errors="replace").splitlines()
        except FileNotFoundError:
            raise CorruptTableError(
                f"The checkpoint {self._storage.uri} has a later batch than {number}, and no offset of that one.", path
            ) from None
        if len(lines) != 3 or lines[0] != _VERSION:
            raise ConfigError(
                f"The checkpoint {self._storage.uri} is not that of a stream out of one Hudi table: {path} has "
                f"{max(0, len(lines) - 2)} offsets in the format {lines[0] if lines else ''!r}; expected 1 in "
                f"{_VERSION!r}. Give this stream a checkpoint location of its own."
            )
        try:
            stored = stored_json(lines[2])
        except ValueError as error:
            raise CorruptTableError(
                f"The checkpoint {self._storage.uri} has an offset that is no JSON.", path
            ) from error
        return StreamOffset.of(stored)

    def _create(self, path: str, text: str) -> bool:
        """Create a file; False if it exists."""
        try:
            self._storage.create_exclusive(path, text.encode())
        except FileExistsError:
            return False
        return True


def _lines(version: str, *parts: Mapping[str, object]) -> str:
    return "\n".join([version, *(json.dumps(part, separators=(",", ":")) for part in parts)])
