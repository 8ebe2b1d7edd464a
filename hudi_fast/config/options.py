"""The registry of options, and the resolution of user options to typed values.

Data flow::

    {"hoodie.x": "true", ...} --resolve--> {Option: value} --WriteOptions / ReadOptions--> reads and writes
                                 |
              contradictory spellings, invalid value -> ConfigError
              unsupported value                      -> UnsupportedFeatureError
              unknown hoodie.* key                   -> one HudiWarning with the closest known key

A working dictionary for Apache Hudi can be passed unchanged: keys of the other family (read options for a write) and
keys that cannot change the result are ignored silently. The modules of :mod:`hudi_fast.config.catalog` define the
options; :mod:`hudi_fast.config.option_docs` prints them as docs/options.md.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from hudi_fast.config.catalog.accepted import ACCEPTED_OPTIONS, ACCEPTED_PREFIXES, MISSED_OPTIONS
from hudi_fast.config.catalog.archive import ARCHIVE_OPTIONS
from hudi_fast.config.catalog.bootstrap import BOOTSTRAP_OPTIONS
from hudi_fast.config.catalog.cdc import CDC_OPTIONS
from hudi_fast.config.catalog.clean import CLEAN_OPTIONS
from hudi_fast.config.catalog.clustering import CLUSTERING_OPTIONS
from hudi_fast.config.catalog.files import BLOOM_OPTIONS, LANCE_OPTIONS, ORC_OPTIONS, PARQUET_OPTIONS, SIZING_OPTIONS
from hudi_fast.config.catalog.hooks import HOOK_OPTIONS
from hudi_fast.config.catalog.index import INDEX_OPTIONS, METADATA_OPTIONS
from hudi_fast.config.catalog.limited import LIMITED_OPTIONS
from hudi_fast.config.catalog.lock import LOCK_OPTIONS
from hudi_fast.config.catalog.metrics import METRICS_OPTIONS
from hudi_fast.config.catalog.read import QUERY_OPTIONS
from hudi_fast.config.catalog.services import COMPACTION_OPTIONS, SERVICE_OPTIONS
from hudi_fast.config.catalog.stream import STREAM_OPTIONS
from hudi_fast.config.catalog.sync import SYNC_OPTIONS
from hudi_fast.config.catalog.ttl import TTL_OPTIONS
from hudi_fast.config.catalog.write import (
    ENGINE_OPTIONS,
    KEY_OPTIONS,
    MERGE_OPTIONS,
    OPERATION_OPTIONS,
    TABLE_OPTIONS,
    TIMEBASED_OPTIONS,
    TRANSACTION_OPTIONS,
)
from hudi_fast.config.merge_mode import MERGE_PROPERTY_PREFIX
from hudi_fast.config.option_descriptor import BOTH, READ, WRITE, Kind, Option, text_of
from hudi_fast.errors import ConfigError
from hudi_fast.events import warn

__all__ = ["BOTH", "OPTIONS", "READ", "WRITE", "Kind", "Option", "find_option", "resolve", "text_of"]

OPTIONS: tuple[Option, ...] = (
    *OPERATION_OPTIONS,
    *TABLE_OPTIONS,
    *CDC_OPTIONS,
    *KEY_OPTIONS,
    *TIMEBASED_OPTIONS,
    *MERGE_OPTIONS,
    *SIZING_OPTIONS,
    *PARQUET_OPTIONS,
    *ORC_OPTIONS,
    *LANCE_OPTIONS,
    *BLOOM_OPTIONS,
    *INDEX_OPTIONS,
    *METADATA_OPTIONS,
    *TRANSACTION_OPTIONS,
    *LOCK_OPTIONS,
    *SERVICE_OPTIONS,
    *COMPACTION_OPTIONS,
    *CLUSTERING_OPTIONS,
    *CLEAN_OPTIONS,
    *ARCHIVE_OPTIONS,
    *TTL_OPTIONS,
    *ENGINE_OPTIONS,
    *BOOTSTRAP_OPTIONS,
    *QUERY_OPTIONS,
    *STREAM_OPTIONS,
    *SYNC_OPTIONS,
    *METRICS_OPTIONS,
    *HOOK_OPTIONS,
    *LIMITED_OPTIONS,
    *MISSED_OPTIONS,
    *ACCEPTED_OPTIONS,
)
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
_PASSED_PREFIXES = (MERGE_PROPERTY_PREFIX, *(prefix for prefix, _ in ACCEPTED_PREFIXES))


def find_option(key: str) -> Option | None:
    """The option with this spelling, or None."""
    return _BY_KEY.get(key)


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
