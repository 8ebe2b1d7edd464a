"""The registry of options, and the resolution of user options to typed values.

Data flow::

    {"hoodie.x": "true", ...} --resolve--> {Option: value} --WriteOptions / ReadOptions--> reads and writes
                                 |
              contradictory spellings, invalid value -> ConfigError
              unsupported value                      -> UnsupportedFeatureError
              unknown hoodie.* key                   -> one HudiWarning with the closest known key

A working dictionary for Apache Hudi can be passed unchanged: keys of the other family (read options for a write) and
keys that cannot change the result are ignored silently. Each option is declared by a field of a dataclass, in the
modules ``*_options.py``; :mod:`hudi_fast.config.generated_docs` prints them as docs/options.md.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from hudi_fast.config.accepted_options import ACCEPTED_OPTIONS, ACCEPTED_PREFIXES, LIMITED_OPTIONS, MISSED_OPTIONS
from hudi_fast.config.bootstrap_options import BOOTSTRAP_OPTIONS
from hudi_fast.config.concurrency_options import FAILED_WRITE_OPTIONS, LOCK_OPTIONS, PENDING_CLUSTERING_OPTIONS
from hudi_fast.config.engine_options import ENGINE_OPTIONS
from hudi_fast.config.file_options import (
    BLOOM_OPTIONS,
    LANCE_OPTIONS,
    LOG_OPTIONS,
    ORC_OPTIONS,
    PARQUET_OPTIONS,
    SIZING_OPTIONS,
)
from hudi_fast.config.index_options import INDEX_OPTIONS
from hudi_fast.config.merge_mode import MERGE_PROPERTY_PREFIX
from hudi_fast.config.metadata_options import METADATA_OPTIONS
from hudi_fast.config.monitoring_options import HOOK_OPTIONS, METRICS_OPTIONS
from hudi_fast.config.option_fields import BOTH, READ, WRITE, Kind, Option, text_of
from hudi_fast.config.read_options import QUERY_OPTIONS
from hudi_fast.config.rewrite_options import CLUSTERING_OPTIONS, COMPACTION_OPTIONS
from hudi_fast.config.service_options import ARCHIVE_OPTIONS, CLEAN_OPTIONS, SERVICE_OPTIONS, TTL_OPTIONS
from hudi_fast.config.stream_options import STREAM_OPTIONS
from hudi_fast.config.sync_options import SYNC_OPTIONS
from hudi_fast.config.table_options import (
    KEY_OPTIONS,
    MERGE_OPTIONS,
    SCHEMA_OPTIONS,
    TABLE_OPTIONS,
    TIMEBASED_OPTIONS,
)
from hudi_fast.config.write_options import OPERATION_OPTIONS
from hudi_fast.errors import ConfigError
from hudi_fast.events import warn

__all__ = [
    "BOTH",
    "OPTIONS",
    "READ",
    "SECTIONS",
    "WRITE",
    "Kind",
    "Option",
    "extra_metadata",
    "find_option",
    "merge_properties",
    "resolve",
    "text_of",
    "written_options",
]

SECTIONS: tuple[tuple[str, tuple[Option, ...]], ...] = (
    ("Writing: operation", OPERATION_OPTIONS),
    ("Writing: table", TABLE_OPTIONS),
    ("Writing: schema", SCHEMA_OPTIONS),
    ("Writing: keys and partitions", KEY_OPTIONS),
    ("Writing: timestamp partitions", TIMEBASED_OPTIONS),
    ("Writing: merging", MERGE_OPTIONS),
    ("Writing: file sizes", SIZING_OPTIONS),
    ("Writing: log files", LOG_OPTIONS),
    ("Writing: Parquet", PARQUET_OPTIONS),
    ("Writing: ORC", ORC_OPTIONS),
    ("Writing: Lance", LANCE_OPTIONS),
    ("Writing: bloom filters", BLOOM_OPTIONS),
    ("Writing: index", INDEX_OPTIONS),
    ("Metadata table", METADATA_OPTIONS),
    ("Writing: failed writes", FAILED_WRITE_OPTIONS),
    ("Concurrent writers", LOCK_OPTIONS),
    ("Table services", SERVICE_OPTIONS),
    ("Compaction", COMPACTION_OPTIONS),
    ("Clustering", CLUSTERING_OPTIONS + PENDING_CLUSTERING_OPTIONS),
    ("Cleaning", CLEAN_OPTIONS),
    ("Archiving", ARCHIVE_OPTIONS),
    ("Partition TTL", TTL_OPTIONS),
    ("Bootstrap", BOOTSTRAP_OPTIONS),
    ("hudi_fast only", ENGINE_OPTIONS),
    ("Reading", QUERY_OPTIONS),
    ("Streaming", STREAM_OPTIONS),
    ("Catalogs", SYNC_OPTIONS),
    ("Metrics", METRICS_OPTIONS),
    ("Callbacks and validators", HOOK_OPTIONS),
    ("Supported for certain values only", LIMITED_OPTIONS),
    ("Ignored with a warning", MISSED_OPTIONS),
)
"""All options but those that are accepted without effect, by subject, as in docs/options.md."""

OPTIONS: tuple[Option, ...] = (*(one for _, options in SECTIONS for one in options), *ACCEPTED_OPTIONS)
"""All options with a key of their own; keys below ``ACCEPTED_PREFIXES`` are not listed."""


def _index(options: Iterable[Option]) -> Mapping[str, Option]:
    """Options by spelling; two options with one spelling are an error in the catalog."""
    index: dict[str, Option] = {}
    for option in options:
        for key in option.keys:
            if key in index:
                raise AssertionError(f"{key} is claimed by {index[key].key} and {option.key}")
            index[key] = option
    return MappingProxyType(index)


_BY_KEY = _index(OPTIONS)
_HUDI_PREFIXES = ("hoodie.", "_hoodie.")
_HADOOP_PREFIXES = ("fs.", "dfs.", "parquet.", "google.cloud.")
_OWN_PREFIX = "hudi_fast."
_PREFIX_KEY = "hoodie.datasource.write.commitmeta.key.prefix"
_PASSED_PREFIXES = (MERGE_PROPERTY_PREFIX, *(prefix for prefix, _ in ACCEPTED_PREFIXES))


def find_option(key: str) -> Option | None:
    """The option with this spelling, or None."""
    return _BY_KEY.get(key)


def written_options(options: Mapping[str, Any]) -> dict[Option, Any]:
    """Typed values of the given write options.

    Raises:
        ConfigError: a key or value is invalid.
        UnsupportedFeatureError: an option requests an unsupported feature.

    Warns:
        HudiWarning: an unknown ``hoodie.`` key.
    """
    return resolve(options, WRITE[0], free_prefix=_free_prefix(options))


def merge_properties(options: Mapping[str, Any]) -> dict[str, str]:
    """The entries ``hoodie.record.merge.property.*`` that are no options, without the prefix."""
    return {
        key.removeprefix(MERGE_PROPERTY_PREFIX): text_of(key, raw)
        for key, raw in options.items()
        if key.startswith(MERGE_PROPERTY_PREFIX) and find_option(key) is None
    }


def extra_metadata(options: Mapping[str, Any]) -> dict[str, str]:
    """The entries that a write stores in the extra metadata of its commit, by their prefix."""
    prefix = _free_prefix(options)
    if not prefix:
        return {}
    own = (*_HUDI_PREFIXES, _OWN_PREFIX)
    return {
        key: text_of(key, raw)
        for key, raw in options.items()
        if key.startswith(prefix) and not key.startswith(own) and not find_option(key)
    }


def _free_prefix(options: Mapping[str, Any]) -> str:
    return text_of(_PREFIX_KEY, options.get(_PREFIX_KEY, "_"))


def resolve(options: Mapping[str, Any], family: str, *, free_prefix: str = "") -> dict[Option, Any]:
    """Typed values of the given options that ``family`` uses; defaults are not filled in.

    Args:
        options: keys in any spelling; values as text, bool, number, or list of names.
        family: ``read`` or ``write``.
        free_prefix: unknown keys with this prefix are left to the caller (extra commit metadata); "" = none.

    Raises:
        ConfigError: an invalid value; two spellings of one option with different values; an unknown ``hudi_fast.``
            key; a key without a known prefix.
        UnsupportedFeatureError: an unsupported value that could change the result.

    Warns:
        HudiWarning: an unknown ``hoodie.`` key, with the closest known key; or an option whose effect would be missed.
    """
    found: dict[Option, tuple[str, Any]] = {}
    for key, raw in options.items():
        option = _BY_KEY.get(key)
        if option is None:
            _check_unknown(key, free_prefix)
        elif family in option.families and option.honoured:
            _add(found, option, key, raw)
        elif option.loss and option.parse(raw, key) != option.default:
            warn(f"{key}={raw} has no effect: {option.loss}")
    for option, (spelling, value) in found.items():
        option.check_supported(value, spelling)
    return {option: value for option, (_, value) in found.items()}


def _add(found: dict[Option, tuple[str, Any]], option: Option, key: str, raw: Any) -> None:
    value = option.parse(raw, key)
    other, known = found.get(option, (key, value))
    if known != value:
        raise ConfigError(
            f"{other}={known!r} and {key}={value!r} are two spellings of one option with different values; "
            f"give {option.key} alone."
        )
    found.setdefault(option, (key, value))


def _check_unknown(key: str, free_prefix: str) -> None:
    if key.startswith(_HUDI_PREFIXES):
        if not key.startswith(_PASSED_PREFIXES):
            warn(f"Unknown option {key} is ignored.{_closest(key)}")
    elif key.startswith(_OWN_PREFIX):
        known = ", ".join(sorted(known for known in _BY_KEY if known.startswith(_OWN_PREFIX)))
        raise ConfigError(f"Unknown option {key}.{_closest(key)} Options of hudi_fast: {known}.")
    elif not (free_prefix and key.startswith(free_prefix)):
        rule = f", or with {free_prefix!r} for extra commit metadata" if free_prefix else ""
        hadoop = " Pass settings of Hadoop as storage_options." if key.startswith(_HADOOP_PREFIXES) else ""
        raise ConfigError(
            f"Unknown option {key}.{_closest(key)} Keys start with `hoodie.` or `hudi_fast.`{rule}.{hadoop}"
        )


def _closest(key: str) -> str:
    matches = difflib.get_close_matches(key, _BY_KEY, n=1, cutoff=0.75)
    return f" Did you mean {matches[0]}?" if matches else ""
