"""Files of a folder in S3 that event notifications name.

Files of a folder in S3 that messages of a queue name: the folder is not listed.

::

    S3 ─► event notifications ─► SQS ─► receive ─► created objects of the folder ─► rows and a new position ─► commit
                                   └◄─────────────────────── delete ◄─────────────────────────────────────────────┘

A queue has no position: it gives each message once or several times, in any order, until it is deleted. So the position
of the table is a memory: the events whose objects the table has, as a hash of 8 bytes each.

- Messages are deleted from the queue after the commit. A process that is killed before the commit leaves no rows, and
  the messages come again: nothing is lost. A turn that fails gives them back at once.
- The commit makes rows and memory visible together. A process that is killed after the commit and before all messages
  are deleted has them again. Their events are in the memory: no object is read, and the messages are deleted. So are
  copies of a message that the queue or S3 sends, and those that come again during a turn that takes long.
- Two processes that receive the same message have the same position before it. One commits; the other one finds another
  position under the table's lock, and gives its turn up.

An event is forgotten when the queue cannot have its message any more: after the queue's retention period and a day.

Sources: ``S3EventsSource``, ``S3EventsMetaSelector``, ``CloudObjectsSelector`` (1.2.0), whose keys these are. There the
events become a table, which a second stream reads (``S3EventsHoodieIncrSource``).

Event notifications of S3, and the memory of those whose objects a table has.

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
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from hudi_fast.errors import ConfigError, InvalidDataError, SourceError
from hudi_fast.events import warn
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.option_names import connection_options
from hudi_fast.storage.s3_options import S3Options
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.streamer.messages import Rejected, Take
from hudi_fast.streamer.settings import PREFIX, StreamSettings
from hudi_fast.streamer.sources.folder import FolderSource, is_hidden
from hudi_fast.streamer.sources.source import Fetched
from hudi_fast.values import dataclass

__all__ = ["EventMemory", "ObjectEvent", "S3EventSource", "hashed", "object_events", "shown_position"]

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
    entry = record["s3"]["object"]
    bucket, key = unquote_plus(record["s3"]["bucket"]["name"]), unquote_plus(entry["key"])
    parts = [bucket, key, *(entry.get(name) for name in ("versionId", "eTag", "sequencer"))]
    if parts[-1] is None:  # S3 counts the events of a key, other servers may not
        parts.append(record["eventTime"])
    return ObjectEvent(bucket, key, int(entry.get("size", 0)), hashed(json.dumps(parts)))


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


_QUEUE = "s3.source.queue."
_URL_KEY = f"{_QUEUE}url"
_EXISTS_KEY = "source.cloud.data.check.file.exists"
_SCHEMES = ("s3", "s3a", "s3n")
_MESSAGES = 1000
_PER_REQUEST = 10
"""Most messages of a request; the limit of SQS, too."""
_WAIT, _LONGEST_WAIT = 20, 20
_HIDDEN_SECONDS, _LONGEST_HIDDEN = 30, 43_200
_DAY = 86_400


class S3EventSource:
    """A source of files that a queue names.

    Args:
        settings: of the streamer: ``hoodie.streamer.s3.source.queue.url``, ``.region``, ``.long.poll.wait`` and
            ``.visibility.timeout`` (seconds), ``.max.messages.per.request`` and ``.max.messages.per.batch``.
        files: reads the files; its folder is in S3.
        takes: takes messages that are no event notifications; None: they are errors.

    Raises:
        ConfigError: a key is missing or wrong, the folder is not in S3, or boto3 is not installed.
    """

    def __init__(self, settings: StreamSettings, files: FolderSource, takes: Take | None = None) -> None:
        self._files, self._takes = files, takes
        self._url, region = settings.required(_URL_KEY), settings.required(f"{_QUEUE}region")
        at = urlsplit(self._url)
        if at.scheme not in ("http", "https") or not at.netloc or not at.path.strip("/"):
            raise ConfigError(
                f"{PREFIX}{_URL_KEY} is the address of a queue, such as "
                f"https://sqs.us-east-1.amazonaws.com/123456789012/events; got {self._url!r}."
            )
        root = urlsplit(files.storage.uri)
        if root.scheme not in _SCHEMES:
            raise ConfigError(f"A queue of S3's events needs a folder in S3; {files.storage.uri} is another one.")
        if settings.flag("checkpoint.force.skip"):
            raise ConfigError(
                f"{PREFIX}checkpoint.force.skip=true stores no position, and messages that come again would be read "
                "again. Leave it out, or read the folder without a queue."
            )
        self._bucket, folder = root.netloc, root.path.strip("/")
        self._prefix = f"{folder}/" if folder else ""
        self._queue = at.path.rpartition("/")[2]
        self._checks = settings.flag(_EXISTS_KEY)
        self._wait = _bounded(settings, "long.poll.wait", _WAIT, 0, _LONGEST_WAIT)
        self._hidden = _bounded(settings, "visibility.timeout", _HIDDEN_SECONDS, 0, _LONGEST_HIDDEN)
        self._per_request = _bounded(settings, "max.messages.per.request", _PER_REQUEST, 1, _PER_REQUEST)
        self._most = settings.count(f"{_QUEUE}max.messages.per.batch", _MESSAGES)
        self._failures = _failures()
        self._client = self._connected(region, f"{at.scheme}://{at.netloc}")
        self._unread: dict[str, str] = {}
        """Receipts of the messages of a turn that is not committed, by the id of the message."""

    def fetch(self, position: str | None, limit: int | None) -> Fetched:
        """See :class:`~hudi_fast.streamer.sources.source.Source`; the limit is in bytes of files.

        A turn ends with the request that reaches the limit.

        Raises:
            ConfigError: the position is another source's.
            InvalidDataError: a message is no event notification, or a file does not have the format.
            SourceError: the queue does not answer, or a file cannot be read.
        """
        memory = EventMemory.of(position)
        self._give_back()  # of a turn that was not committed
        try:
            return self._fetched(position, memory, limit)
        except Exception:
            self._give_back()
            raise

    def _fetched(self, position: str | None, memory: EventMemory, limit: int | None) -> Fetched:
        waiting, retention = self._attributes()
        spent, sizes, identities = dict[str, str](), dict[str, int](), set[bytes]()
        received = others = 0
        while received < min(waiting, self._most) and (limit is None or sum(sizes.values()) < limit):
            messages = self._received(min(self._per_request, self._most - received))
            if not messages:
                break
            received += len(messages)
            self._unread.update({one["MessageId"]: one["ReceiptHandle"] for one in messages})
            for one in messages:
                fresh = [each for each in self._events(one) if each.identity not in memory]
                mine = [each for each in fresh if self._is_read(each)]
                others += sum(bool(each.key) and not self._is_inside(each) for each in fresh)
                identities.update(each.identity for each in mine)
                sizes.update({each.key: each.size for each in mine if each.key})
                if not mine:
                    spent[one["MessageId"]] = self._unread.pop(one["MessageId"])
        if others:
            warn(f"The queue {self._queue} has events of {others} objects outside of {self._files.storage.uri}.")
        self._delete(spent)
        lag = {self._queue: max(0, waiting - received)}
        if not identities:
            return Fetched(None, position, lag)
        after = memory.after(identities, time.time(), retention + _DAY).text
        paths = [key.removeprefix(self._prefix) for key in sizes]
        paths = self._present(paths) if self._checks else paths
        return Fetched(self._rows(paths) if paths else None, after, lag)

    def committed(self, position: str | None) -> None:
        """Delete the messages of the turn from the queue."""
        unread, self._unread = self._unread, {}
        self._delete(unread)

    def close(self) -> None:
        """Give messages of a turn that was not committed back, and close the connections to the queue."""
        self._give_back()
        self._client.close()

    # ---- messages

    def _events(self, message: Mapping[str, Any]) -> list[ObjectEvent]:
        try:
            return object_events(message["Body"])
        except InvalidDataError as error:
            place = f"Queue {self._queue}, message {message['MessageId']}"
            if self._takes is None:
                raise InvalidDataError(
                    f"{place}: {error} Delete the message from the queue, or keep such messages in an error table."
                ) from error
            self._takes([Rejected(place, f"{place}: {error}", message["Body"].encode())])
            return [ObjectEvent(self._bucket, "", 0, hashed(place))]  # so that it changes the position

    def _is_inside(self, event: ObjectEvent) -> bool:
        return event.bucket == self._bucket and event.key.startswith(self._prefix)

    def _is_read(self, event: ObjectEvent) -> bool:
        """Whether the object is a file of the folder, or stands for a message that cannot be read."""
        if not event.key:
            return True
        return self._is_inside(event) and event.size > 0 and not is_hidden(event.key.removeprefix(self._prefix))

    # ---- files

    def _present(self, paths: Sequence[str]) -> list[str]:
        present = [path for path in paths if self._files.storage.has_file(path)]
        if len(present) < len(paths):
            gone = next(path for path in paths if path not in present)
            warn(
                f"Left out objects that were deleted after their events: {len(paths) - len(present)}; the first: "
                f"{self._files.storage.absolute(gone)}."
            )
        return present

    def _rows(self, paths: Sequence[str]) -> Any:
        try:
            return self._files.rows(paths)
        except SourceError as error:
            gone = [path for path in paths if not self._files.storage.has_file(path)]
            if not gone:
                raise
            raise SourceError(
                f"{self._files.storage.absolute(gone[0])} was deleted after its event. Set "
                f"{PREFIX}{_EXISTS_KEY}=true to leave such objects out."
            ) from error

    # ---- the queue

    def _connected(self, region: str, server: str) -> Any:
        core = import_extra("botocore.config", "s3", "A queue of S3's events")
        options = S3Options.of(connection_options(self._files.storage.options))
        config = core.Config(
            connect_timeout=min(options.timeout, 10),
            read_timeout=options.timeout + self._wait,
            proxies={"http": options.proxy, "https": options.proxy} if options.proxy else None,
        )
        return options.session().client("sqs", region_name=region, endpoint_url=server, config=config)

    def _attributes(self) -> tuple[int, int]:
        """About how many messages wait, and for how many seconds the queue keeps a message."""
        names = ["ApproximateNumberOfMessages", "MessageRetentionPeriod"]
        try:
            found = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=names)["Attributes"]
        except self._failures as error:
            raise self._unreachable(error) from error
        return int(found[names[0]]), int(found[names[1]])

    def _received(self, limit: int) -> list[Mapping[str, Any]]:
        try:
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=limit,
                WaitTimeSeconds=self._wait,
                VisibilityTimeout=self._hidden,
            )
        except self._failures as error:
            raise self._unreachable(error) from error
        return list(answer.get("Messages", ()))

    def _delete(self, receipts: Mapping[str, str]) -> None:
        """Delete messages. The table has their rows, or they have none: a failure is no error."""
        pairs, failed = list(receipts.items()), 0
        for at in range(0, len(pairs), _PER_REQUEST):
            part = pairs[at : at + _PER_REQUEST]
            entries = [{"Id": str(number), "ReceiptHandle": receipt} for number, (_, receipt) in enumerate(part)]
            try:
                answer = self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
                failed += len(answer.get("Failed", ()))
            except self._failures:
                failed += len(part)
        if failed:
            warn(f"The queue {self._queue} did not delete {failed} messages. They come again, and are not read again.")

    def _give_back(self) -> None:
        """Let messages come again at once. Without this, they come when the visibility timeout is over."""
        receipts, self._unread = list(self._unread.values()), {}
        for at in range(0, len(receipts), _PER_REQUEST):
            part = receipts[at : at + _PER_REQUEST]
            entries = [
                {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": 0}
                for number, receipt in enumerate(part)
            ]
            with suppress(*self._failures):
                self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)

    def _unreachable(self, error: Exception) -> SourceError:
        return SourceError(
            f"The queue {self._url} cannot be read: {error}. Check the address, the region, the network and the rights "
            "of this user (sqs:GetQueueAttributes, ReceiveMessage, DeleteMessage, ChangeMessageVisibility)."
        )


def _failures() -> tuple[type[Exception], ...]:
    botocore = import_extra("botocore.exceptions", "s3", "A queue of S3's events")
    return botocore.ClientError, botocore.BotoCoreError


def _bounded(settings: StreamSettings, name: str, default: int, least: int, limit: int) -> int:
    found = settings.count(f"{_QUEUE}{name}", default, least)
    if found > limit:
        raise ConfigError(f"{PREFIX}{_QUEUE}{name} is a number, {least} to {limit}; got {found}.")
    return found
