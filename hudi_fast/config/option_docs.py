"""Generator of docs/options.md from the registry of options.

``python -m hudi_fast.config.option_docs > docs/options.md`` regenerates the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from hudi_fast.config.catalog.accepted import ACCEPTED_GROUPS, ACCEPTED_PREFIXES, MISSED_OPTIONS
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
from hudi_fast.config.option_descriptor import Kind, Option

__all__ = ["options_page"]

_SECTIONS = (
    ("Writing: operation", OPERATION_OPTIONS),
    ("Writing: table and schema", TABLE_OPTIONS),
    ("Writing: change data capture", CDC_OPTIONS),
    ("Writing: keys and partitions", KEY_OPTIONS),
    ("Writing: timestamp partitions", TIMEBASED_OPTIONS),
    ("Writing: merging", MERGE_OPTIONS),
    ("Writing: file sizes", SIZING_OPTIONS),
    ("Writing: Parquet", PARQUET_OPTIONS),
    ("Writing: ORC", ORC_OPTIONS),
    ("Writing: Lance", LANCE_OPTIONS),
    ("Writing: bloom filters", BLOOM_OPTIONS),
    ("Writing: index", INDEX_OPTIONS),
    ("Metadata table", METADATA_OPTIONS),
    ("Writing: failed writes", TRANSACTION_OPTIONS),
    ("Concurrent writers", LOCK_OPTIONS),
    ("Table services", SERVICE_OPTIONS),
    ("Compaction", COMPACTION_OPTIONS),
    ("Clustering", CLUSTERING_OPTIONS),
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
_INTRO = """\
# Options

Keys are Apache Hudi's, in every spelling that Hudi accepts. Values may be text, booleans, numbers or lists of names.

- An invalid value raises `ConfigError`. A valid Hudi value that hudi_fast does not support raises
  `UnsupportedFeatureError`, and so does any value of an option marked *refused*.
- Two spellings of one option with different values raise `ConfigError`.
- An unknown `hoodie.` key raises a `HudiWarning` once. An unknown `hudi_fast.` key raises `ConfigError`.
- Other keys are stored in the extra metadata of the commit if they begin with
  `hoodie.datasource.write.commitmeta.key.prefix` (default `_`), and raise `ConfigError` otherwise.
- A write ignores read options, and a read ignores write options.
"""


def options_page() -> str:
    """The page: one table per subject, then the keys that are accepted without effect."""
    parts = [_INTRO]
    parts += [f"## {title}\n\n{_table(options)}" for title, options in _SECTIONS]
    parts.append("## Accepted without effect\n\n" + "\n\n".join(_accepted_groups()) + "\n")
    parts.append(
        "All keys with these prefixes, unless the page lists them above:\n\n" + "\n".join(_accepted_prefixes()) + "\n"
    )
    return "\n".join(parts)


def _table(options: Iterable[Option]) -> str:
    lines = ["| key | values | default | meaning |", "|---|---|---|---|"]
    lines += [f"| {_keys(option)} | {_values(option)} | {_default(option)} | {option.doc} |" for option in options]
    return "\n".join(lines) + "\n"


def _keys(option: Option) -> str:
    also = "".join(f"<br>also `{alias}`" for alias in option.aliases)
    return f"`{option.key}`{also}"


def _values(option: Option) -> str:
    if option.supported is not None:
        return f"`{option.supported_text()}`" if option.supported else "*refused*"
    if option.kind is Kind.ENUM:
        return f"`{', '.join(option.choices)}`"
    extra = option.range_text() or option.unit
    return f"{option.kind.value}, {extra}" if extra else option.kind.value


def _default(option: Option) -> str:
    if option.default is None:
        return "–"
    if isinstance(option.default, bool):
        return "`true`" if option.default else "`false`"
    text = ",".join(option.default) if isinstance(option.default, tuple) else str(option.default)
    return f"`{text}`" if text else "empty"


def _accepted_groups() -> list[str]:
    return [f"{doc}\n\n" + "\n".join(f"- `{key}`" for key in keys.split()) for doc, keys in ACCEPTED_GROUPS]


def _accepted_prefixes() -> list[str]:
    return [f"- `{prefix}*`: {doc}" for prefix, doc in ACCEPTED_PREFIXES]


if __name__ == "__main__":
    sys.stdout.write(options_page())
