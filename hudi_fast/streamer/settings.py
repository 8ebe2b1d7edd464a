"""The settings of a streamer, its arguments and its places.

The settings of a streamer: HoodieStreamer's property file and arguments.

::

    properties ─┬─ hoodie.streamer.*, hoodie.deltastreamer.* ──► of the streamer and its source
                ├─ other hoodie.* and hudi_fast.* ─────────────► of the write
                └─ all others ─────────────────────────────────► of the source's client, such as bootstrap.servers
    arguments ──── --source-limit 1000, or the property hudi_fast.streamer.source-limit=1000

Sources: ``HoodieStreamer.Config`` and the classes ``*SourceConfig`` of hudi-utilities (1.2.0).

Opens the places of a stream: its table, folders, and files of schemas and of SQL.

One set of storage options is for all places in stores. A stream may read a folder of this machine and write to a table
in S3, so places of this machine are opened without them.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hudi_fast.config.options import find_option
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.events import warn
from hudi_fast.sessions import open_storage
from hudi_fast.storage.base import Storage
from hudi_fast.storage.places import scheme_of
from hudi_fast.streamer.arguments import _W, ARGUMENTS, OF_SESSIONS, REFUSED, WITHOUT_EFFECT
from hudi_fast.values import dataclass

__all__ = [
    "ERRORS_PREFIX",
    "OLD_PREFIX",
    "OWN_PREFIX",
    "PREFIX",
    "STREAM_KEYS",
    "StreamSettings",
    "open_place",
    "require_store",
    "truth",
]


PREFIX, OLD_PREFIX = "hoodie.streamer.", "hoodie.deltastreamer."
OWN_PREFIX = "hudi_fast.streamer."
ERRORS_PREFIX = "hoodie.errortable."
"""Prefixes of keys: of the streamer, the older one of the streamer, of its arguments, of its error table."""
_OPERATION = f"{_W}operation"

STREAM_KEYS = frozenset(
    """
    source.dfs.root source.cloud.data.check.file.exists
    s3.source.queue.url s3.source.queue.region s3.source.queue.fs s3.source.queue.long.poll.wait
    s3.source.queue.max.messages.per.batch s3.source.queue.max.messages.per.request
    s3.source.queue.visibility.timeout
    source.kafka.topic source.kafka.checkpoint.type source.kafka.enable.commit.offset
    source.kafka.enable.failOnDataLoss source.kafka.append.offsets kafka.source.maxEvents
    source.kafka.value.deserializer.class source.kafka.minPartitions
    source.hoodieincr.path source.hoodieincr.num_instants source.hoodieincr.read_latest_on_missing_ckpt
    source.hoodieincr.missing.checkpoint.strategy source.hoodieincr.drop.all.meta.fields.from.source
    jdbc.url jdbc.user jdbc.password jdbc.password.file jdbc.driver.class jdbc.table.name jdbc.incr.pull
    jdbc.table.incr.column.name
    source.kafka.proto.value.deserializer.class
    schemaprovider.source.schema.file schemaprovider.target.schema.file schemaprovider.registry.url
    schemaprovider.proto.class.name schemaprovider.proto.flatten.wrappers
    schemaprovider.proto.timestamps.as.records schemaprovider.proto.max.recursion.depth
    transformer.sql transformer.sql.file checkpoint.force.skip source.json.skip.invalid.records
    """.split()
)
"""Keys after ``hoodie.streamer.`` that are honoured; and those of ``csv.`` and of transformers with a name."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """What a streamer does.

    Attributes:
        path: of the table.
        source_class: name of the source's class, without its package.
        options: of the write.
        stream: keys after ``hoodie.streamer.``, and their values.
        client: keys of the source's client.
        arguments: values of :data:`ARGUMENTS` that were given, by name.
        errors: keys after ``hoodie.errortable.``, and their values.
        without_effect: names of given arguments about Spark, and of others that change nothing here.
    """

    path: str
    source_class: str
    options: Mapping[str, str]
    stream: Mapping[str, str]
    client: Mapping[str, str]
    arguments: Mapping[str, str]
    errors: Mapping[str, str] = field(default_factory=dict)
    without_effect: tuple[str, ...] = ()

    @classmethod
    def of(cls, properties: Mapping[str, Any], arguments: Mapping[str, Any] | None = None) -> StreamSettings:
        """The settings of a property file and of arguments.

        Args:
            properties: of the file, and of ``--hoodie-conf``.
            arguments: by name, with dashes or underscores; they win over properties.

        Raises:
            ConfigError: an argument or a property is unknown, wrong or missing, or two of them contradict each other.
            UnsupportedFeatureError: an argument is refused.

        Warns:
            HudiWarning: an unknown key of the streamer.
        """
        own = {key.removeprefix(OWN_PREFIX): value for key, value in properties.items() if key.startswith(OWN_PREFIX)}
        given = {**_checked_arguments(own), **_checked_arguments(arguments or {})}
        stream, options = dict[str, str](), dict[str, str]()
        client, errors = dict[str, str](), dict[str, str]()
        for key, raw in properties.items():
            text = str(raw)
            if raw is None or key.startswith(OWN_PREFIX):
                continue
            if key.startswith(ERRORS_PREFIX):
                errors[key.removeprefix(ERRORS_PREFIX)] = text
                continue
            if find_option(key) is not None or not key.startswith((PREFIX, OLD_PREFIX)):
                (options if key.startswith(("hoodie.", "hudi_fast.")) else client)[key] = text
                continue
            name = key.removeprefix(PREFIX).removeprefix(OLD_PREFIX)
            if stream.setdefault(name, text) != text:
                raise ConfigError(f"{PREFIX}{name} and {OLD_PREFIX}{name} have different values; give one of them.")
        _warn_of_unknown(stream)
        for name, option in _OPTION_OF.items():
            if name in given:
                options[option] = given[name]
        if "enable-hive-sync" in given:
            options["hoodie.datasource.hive_sync.enable"] = given["enable-hive-sync"]
        if given.get("filter-dupes") == "true":
            options[f"{_W}insert.drop.duplicates"] = "true"
        if given.get("disable-compaction") == "true":
            options["hoodie.compact.inline"] = "false"
        _set_operation(options, given)
        for name in ("target-base-path", "source-class"):
            if not given.get(name):
                raise ConfigError(f"A streamer needs --{name}, or the property {OWN_PREFIX}{name}.")
        names = {name.replace("_", "-") for name, value in {**own, **(arguments or {})}.items() if value is not None}
        idle = tuple(sorted(names & WITHOUT_EFFECT - (OF_SESSIONS if given.get("engine") == "spark" else set())))
        return cls(
            given["target-base-path"], _short(given["source-class"]), options, stream, client, given, errors, idle
        )

    @property
    def checkpoint(self) -> str | None:
        """Position where the stream begins."""
        return self.arguments.get("checkpoint") or None

    @property
    def ignored(self) -> str | None:
        """Why the position of the table is ignored."""
        return self.arguments.get("ignore-checkpoint") or None

    @property
    def name(self) -> str | None:
        """Name of the stream, where several feed a table; None for HoodieStreamer's only one."""
        return self.arguments.get("name") or None

    def number(self, name: str) -> float | None:
        """An argument as a number; None without it.

        Raises:
            ConfigError: it is none, or negative.
        """
        text = self.arguments.get(name, _DEFAULTS.get(name, ""))
        if not text:
            return None
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number < math.inf:
            raise ConfigError(f"--{name} is a number, 0 or more; got {text!r}.")
        return number

    def is_set(self, name: str) -> bool:
        """Whether an argument that stands alone was given."""
        return self.arguments.get(name) == "true"

    def required(self, name: str) -> str:
        """The value of a key after ``hoodie.streamer.``.

        Raises:
            ConfigError: it is not given.
        """
        value = self.stream.get(name)
        if not value:
            raise ConfigError(f"{self.source_class} needs the property {PREFIX}{name}.")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """The truth value of a key after ``hoodie.streamer.``.

        Raises:
            ConfigError: it is neither true nor false.
        """
        return truth(f"{PREFIX}{name}", self.stream.get(name, str(default)))

    def count(self, name: str, default: int, least: int = 1) -> int:
        """The whole number of a key after ``hoodie.streamer.``.

        Raises:
            ConfigError: it is none, or less than ``least``.
        """
        text = self.stream.get(name, str(default)).strip()
        if not text.isdecimal() or int(text) < least:
            raise ConfigError(f"{PREFIX}{name} is a number, {least} or more; got {text!r}.")
        return int(text)


def truth(key: str, text: str) -> bool:
    """The truth value of a text.

    Args:
        key: that has it, for errors.
        text: ``true`` or ``false``, in any case.

    Raises:
        ConfigError: it is neither.
    """
    found = text.strip().lower()
    if found not in ("true", "false"):
        raise ConfigError(f"{key} is true or false; got {found!r}.")
    return found == "true"


_OPTION_OF = {one.name: one.option for one in ARGUMENTS if one.option}
_DEFAULTS = {one.name: one.default for one in ARGUMENTS}
_NAMES = {name: one for one in ARGUMENTS for name in (one.name, *one.others)}


def _short(name: str) -> str:
    """The name of a class without its package."""
    return name.strip().rpartition(".")[2]


def _set_operation(options: dict[str, str], given: Mapping[str, str]) -> None:
    """Set the operation; like HoodieStreamer, ignore the option of that name."""
    operation = given.get("op", "UPSERT").lower()
    for key, value in options.items():
        option = find_option(key)
        if option is not None and option.key == _OPERATION and "op" not in given and value.lower() != operation:
            warn(
                f"{key}={value} has no effect on a streamer, whose operation is UPSERT unless --op names another one. "
                f"Give --op {value.upper()}, or remove the option."
            )
    if operation == "upsert" and given.get("filter-dupes") == "true":
        raise ConfigError("--filter-dupes with --op UPSERT would drop updates. Give --op INSERT, or leave it out.")
    options[_OPERATION] = operation


def _checked_arguments(given: Mapping[str, Any]) -> dict[str, str]:
    checked: dict[str, str] = {}
    for written, value in given.items():
        name = written.replace("_", "-")
        if value is None or name in WITHOUT_EFFECT:
            continue
        if name in REFUSED:
            if str(value).lower() == "false":
                continue
            raise UnsupportedFeatureError(f"--{name} is not supported: {REFUSED[name]}.")
        known = _NAMES.get(name)
        if known is None:
            close = difflib.get_close_matches(name, _NAMES, 1)
            raise ConfigError(f"Unknown argument --{name}." + (f" Did you mean --{close[0]}?" if close else ""))
        text = str(value).strip()
        text = text.lower() if known.is_flag or isinstance(value, bool) else text
        if known.is_flag:
            truth(f"--{name}", text)
        if checked.setdefault(known.name, text) != text:
            raise ConfigError(f"--{known.name} is given twice, with different values.")
    return checked


def _warn_of_unknown(stream: Mapping[str, str]) -> None:
    for name in stream:
        if name in STREAM_KEYS or name.startswith(("csv.", "transformer.sql.")):
            continue
        close = difflib.get_close_matches(name, STREAM_KEYS, 1, 0.75)
        hint = f" Did you mean {PREFIX}{close[0]}?" if close else ""
        warn(f"The streamer ignores the unknown option {PREFIX}{name}.{hint}")


_PLACES = (
    *("source.dfs.root", "source.hoodieincr.path"),
    *("schemaprovider.source.schema.file", "schemaprovider.target.schema.file"),
)
_SQL_FILE = "transformer.sql.file"


def open_place(spark: Any, path: str, storage_options: Mapping[str, Any] | None) -> Storage:
    """The storage of a place.

    Args:
        spark: the session of the stream, whose settings count without storage options; None without one.
        path: of the place.
        storage_options: of the stream.

    Raises:
        HudiError: the path or an option is invalid.
    """
    return open_storage(spark, path, None if scheme_of(path) == "file" else storage_options)


def require_store(settings: StreamSettings, storage_options: Mapping[str, Any] | None) -> None:
    """Check that storage options have a place that takes them.

    Raises:
        ConfigError: all places of the stream are on this machine.
    """
    named = [settings.stream.get(key, "") for key in _PLACES]
    named += [value for key, value in settings.stream.items() if key.startswith(_SQL_FILE)]
    named += [settings.errors.get("base.path", ""), settings.arguments.get("proto-descriptor-file", "")]
    if storage_options and all(scheme_of(one) == "file" for one in (settings.path, *named)):
        raise ConfigError(
            f"Local paths do not support storage options; got {sorted(storage_options)}, and all paths of the stream "
            f"into {settings.path} are local."
        )
