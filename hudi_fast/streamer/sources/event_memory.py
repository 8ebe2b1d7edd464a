"""Event notifications of S3, and the memory of those whose objects a table has.

::

    body of a message ─► object_events ─► ObjectEvent, with a hash that tells it apart
    position ─► EventMemory ─► after(hashes of a turn) ─► the next position
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_plus

from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.storage.stored_json import stored_json

__all__ = ["EventMemory", "ObjectEvent", "hashed", "object_events", "shown_position"]

_HOUR = 3600
_HASH_BYTES = 8
_MARK = "s3-events:"
_MEMORY = re.compile(r"s3-events:(?:\d+=[A-Za-z0-9+/=]+(?:,\d+=[A-Za-z0-9+/=]+)*)?")
_CREATED = "ObjectCreated"
_TEST_EVENT = "s3:TestEvent"


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """An object was created.

    Attributes:
        bucket: of the object.
        key: of the object.
        size: bytes of the object.
        identity: hash of what tells the event apart from other events; copies of its message have the same.
    """

    bucket: str
    key: str
    size: int
    identity: bytes


def object_events(body: str) -> list[ObjectEvent]:
    """The created objects that a message names.

    Args:
        body: of a message: S3's event notification, or a notification of SNS with one inside. S3's test event has none.

    Raises:
        InvalidDataError: it is neither.
    """
    try:
        found = stored_json(body)
        if "Message" in found and "Records" not in found:
            found = stored_json(found["Message"])
        if found.get("Event") == _TEST_EVENT:
            return []
        return [_event(one) for one in found["Records"] if one["eventName"].startswith(_CREATED)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidDataError(
            f"expected an event notification of S3; found {body[:200]!r} ({type(error).__name__}: {error})."
        ) from error


def _event(record: Mapping[str, Any]) -> ObjectEvent:
    told = record["s3"]["object"]
    bucket, key = unquote_plus(record["s3"]["bucket"]["name"]), unquote_plus(told["key"])
    parts = [bucket, key, *(told.get(name) for name in ("versionId", "eTag", "sequencer"))]
    if parts[-1] is None:  # S3 counts the events of a key, other servers may not
        parts.append(record["eventTime"])
    return ObjectEvent(bucket, key, int(told.get("size", 0)), hashed(json.dumps(parts)))


def hashed(text: str) -> bytes:
    """The hash that stands for a text in a memory: 8 bytes."""
    return hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).digest()


@dataclass(frozen=True, slots=True)
class EventMemory:
    """Events whose objects the table has, by the hour since 1970 in which they were read.

    Its text is ``s3-events:494412=0aBc...,494413=...``: in base64, the hashes of each hour.
    """

    hours: Mapping[int, frozenset[bytes]] = field(default_factory=dict)

    @classmethod
    def of(cls, position: str | None) -> EventMemory:
        """The memory that a position is.

        Raises:
            ConfigError: it is the position of another source.
        """
        if position is None:
            return cls()
        try:
            if not _MEMORY.fullmatch(position):
                raise ValueError("other text")
            pairs = [one.split("=", 1) for one in position.removeprefix(_MARK).split(",") if one]
            return cls({int(hour): frozenset(_split(base64.b64decode(text, validate=True))) for hour, text in pairs})
        except (ValueError, binascii.Error) as error:
            raise ConfigError(
                f"The position {position[:60]!r} is not one of a queue of S3's events. Give --ignore-checkpoint if the "
                "source has changed: all objects that the queue names are read then."
            ) from error

    def __contains__(self, identity: bytes) -> bool:
        return any(identity in known for known in self.hours.values())

    def after(self, identities: Iterable[bytes], now: float, seconds: float) -> EventMemory:
        """The memory with more events, and without those that were read too long ago.

        Args:
            identities: of the events that are read.
            now: seconds since 1970.
            seconds: how long an event is kept.
        """
        kept = {hour: known for hour, known in self.hours.items() if (hour + 1) * _HOUR + seconds > now}
        added = frozenset(identities)
        this = int(now // _HOUR)
        return EventMemory({**kept, this: kept.get(this, frozenset()) | added} if added else kept)

    @property
    def text(self) -> str:
        """The position."""
        parts = (
            f"{hour}={base64.b64encode(b''.join(sorted(self.hours[hour]))).decode()}" for hour in sorted(self.hours)
        )
        return _MARK + ",".join(parts)


def _split(hashes: bytes) -> list[bytes]:
    if len(hashes) % _HASH_BYTES:
        raise ValueError("cut off")
    return [hashes[at : at + _HASH_BYTES] for at in range(0, len(hashes), _HASH_BYTES)]


def shown_position(position: str | None) -> str | None:
    """The position as people are shown it: that of a queue by the number of events, all others as they are."""
    if position is None or not _MEMORY.fullmatch(position):
        return position
    return f"{sum(map(len, EventMemory.of(position).hours.values()))} events of S3"
