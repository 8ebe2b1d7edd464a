"""Everyday words for options, and names that users of other libraries try.

Keyword arguments of writes: everyday words for the options that describe a table.

::

    write(rows, path, options, key="id", order_by="ts")
        options ──┐
        words ────┴─► with_words ─► {"hoodie.datasource.write.recordkey.field": "id", ...} ─► as without words

A word is an option by another name: it is checked as the option is, and must not contradict it.

Names from other libraries, with the names of this one, for the message of an ``AttributeError``.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

from hudi_fast.config.option_names import INDEX_WORDS, TABLE_TYPE_WORDS, IndexWord, Operation, TableTypeWord
from hudi_fast.errors import ConfigError

__all__ = [
    "MERGE_GUESSES",
    "MODULE_GUESSES",
    "RENAMED",
    "SERVICE_GUESSES",
    "TABLE_GUESSES",
    "TableWords",
    "Words",
    "checked_options",
    "missing",
    "new_name",
    "with_words",
]

_W = "hoodie.datasource.write."

_Set: TypeAlias = Callable[[str, Any], dict[str, str]]
"""Makes the options of a word from its name and its value."""

_RECORD_INDEXES = {
    "record": ("GLOBAL_RECORD_LEVEL_INDEX", "hoodie.metadata.global.record.level.index.enable"),
    "partitioned_record": ("RECORD_LEVEL_INDEX", "hoodie.metadata.record.level.index.enable"),
}


class TableWords(TypedDict, total=False):
    """Keyword arguments of calls on a table; words that describe a new table must fit an existing one.

    Attributes:
        name: of the table; by default the name of its folder.
        key: column or columns whose values identify a row.
        partition_by: column or columns whose values make folders.
        order_by: column or columns that decide which of two rows with one key is newer: the row with the larger value.
        table_type: ``copy_on_write`` or ``merge_on_read``.
        index: how writes find the file of a key: ``simple``, ``bloom``, ``bucket``, ``record`` ...
    """

    name: str
    key: str | Sequence[str]
    partition_by: str | Sequence[str]
    order_by: str | Sequence[str]
    table_type: TableTypeWord
    index: IndexWord


class Words(TableWords, total=False):
    """Keyword arguments of a write: :class:`TableWords` and the operation.

    Attributes:
        operation: what the write does with its rows.
    """

    operation: Operation


def with_words(options: Mapping[str, Any] | None, words: Mapping[str, Any]) -> dict[str, Any]:
    """Options, and the options that words stand for.

    Args:
        options: ``hoodie.*`` keys.
        words: :class:`Words`; a word whose value is None counts as not given.

    Raises:
        ConfigError: an unknown word or value; a word and an option that differ.
    """
    given = dict(checked_options(options) or {})
    spellings = {_canonical(key): key for key in given} if words else {}
    for word, value in words.items():
        if word not in _WORDS:
            raise ConfigError(_unknown("keyword argument", word, tuple(_WORDS)))
        if value is None:
            continue
        for key, text in _WORDS[word](word, value).items():
            spelling = spellings.get(key)
            if spelling is None:
                given[key] = text
            elif _comparable(given[spelling]) != _comparable(text):
                raise ConfigError(
                    f"{word}={value!r} contradicts the option {spelling}={given[spelling]!r}. Give one of the two."
                )
    return given


def checked_options(options: Any) -> Mapping[str, Any] | None:
    """The argument ``options`` of a call.

    Raises:
        ConfigError: it is not a mapping, or a key is not a text.
    """
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(
            f"options is a mapping of hoodie.* keys to values; got {options!r}. A Spark session is given as spark=."
        )
    unnamed = [key for key in options or () if not isinstance(key, str)]
    if unnamed:
        raise ConfigError(f"options has keys that are texts, such as hoodie.table.name; got the key {unnamed[0]!r}.")
    return options


def _columns(option: str) -> _Set:
    def options(word: str, value: Any) -> dict[str, str]:
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) and name for name in names):
            raise ConfigError(f"{word} takes the name of a column, or a list of names; got {value!r}.")
        return {option: ",".join(names)}

    return options


def _choice(choices: Sequence[str], options: Callable[[str], dict[str, str]]) -> _Set:
    def checked(word: str, value: Any) -> dict[str, str]:
        text = str(value).lower()
        if text not in choices:
            raise ConfigError(_unknown(f"value of {word}", value, choices))
        return options(text)

    return checked


def _text(option: str) -> _Set:
    return lambda word, value: {option: str(value)}


def _index(word: str) -> dict[str, str]:
    kind, switch = _RECORD_INDEXES.get(word, (word.upper(), None))
    return {"hoodie.index.type": kind} | ({} if switch is None else {switch: "true"})


_WORDS = {
    "name": _text("hoodie.table.name"),
    "key": _columns(f"{_W}recordkey.field"),
    "partition_by": _columns(f"{_W}partitionpath.field"),
    "order_by": _columns(f"{_W}precombine.field"),
    "table_type": _choice(TABLE_TYPE_WORDS, lambda text: {f"{_W}table.type": text.upper()}),
    "index": _choice(INDEX_WORDS, _index),
    "operation": _text(f"{_W}operation"),
}

_GUESSES = {
    **dict.fromkeys(("primary_key", "record_key", "keys", "recordkey"), "key"),
    **dict.fromkeys(
        ("partition", "partitions", "partition_cols", "partition_columns", "partitioned_by"), "partition_by"
    ),
    **dict.fromkeys(("precombine", "precombine_field", "ordering", "ordering_field", "version_column"), "order_by"),
    **dict.fromkeys(("type", "kind"), "table_type"),
    **dict.fromkeys(("table", "table_name"), "name"),
}
"""Names that these words have elsewhere, for messages."""


def _unknown(what: str, found: Any, known: Sequence[str]) -> str:
    text = str(found).lower().replace("-", "_")
    close = [_GUESSES[text]] if text in _GUESSES else difflib.get_close_matches(text, known, 1, 0.5)
    hint = f"did you mean {close[0]!r}?" if close and close[0] in known else f"known are {', '.join(known)}."
    return f"Unknown {what}: {found!r}; {hint}"


def _canonical(key: str) -> str:
    from hudi_fast.config.options import find_option  # loads all groups of options; most calls give none

    option = find_option(key)
    return key if option is None else option.key


def _comparable(value: Any) -> str:
    return ",".join(part.strip() for part in str(value).split(",")).lower()


RENAMED = {
    "log_compact": "compact_logs",
    "plan_ttl": "plan_expire_partitions",
    "register": "register_data_source",
    "ttl": "expire_partitions",
}
"""Earlier names of public calls, which work for one more release."""

MODULE_GUESSES = {
    **dict.fromkeys(("read_table", "read_hudi", "load", "scan_hudi"), "hudi_fast.read(path) or hudi_fast.scan(path)"),
    **dict.fromkeys(("scan_polars", "read_polars"), "hudi_fast.HudiTable(path).to_polars(lazy=True)"),
    **dict.fromkeys(("write_table", "write_hudi", "write_deltalake", "save"), "hudi_fast.write(rows, path, key=...)"),
    **dict.fromkeys(("open", "open_table", "Table", "load_table", "DeltaTable"), "hudi_fast.HudiTable(path)"),
    **dict.fromkeys(("exists", "table_exists", "is_hudi_table"), "hudi_fast.is_table(path)"),
    **dict.fromkeys(("upsert", "insert"), "hudi_fast.write(rows, path, operation=...) or HudiTable(path).upsert(rows)"),
}
"""Names of other libraries for names of the package."""

TABLE_GUESSES = {
    **dict.fromkeys(("version_history", "snapshots", "commits", "timeline", "versions", "log"), "history()"),
    **dict.fromkeys(("read", "to_pyarrow_table", "to_table", "collect"), "to_arrow()"),
    **dict.fromkeys(("to_pyarrow_dataset", "dataset", "to_lazy"), "scan()"),
    **dict.fromkeys(("plan_files", "get_splits", "splits", "to_ray", "to_dask"), "the method splits of scan()"),
    **dict.fromkeys(("vacuum", "clean", "expire_snapshots"), "services.clean()"),
    **dict.fromkeys(
        ("compact", "rewrite_data_files"), "services.compact() for log files, or services.cluster() for small files"
    ),
    **dict.fromkeys(("optimize", "z_order", "cluster", "sort"), "services.cluster(), which sorts and joins files"),
    **dict.fromkeys(("restore", "rollback", "savepoint", "repair", "validate"), "the method of that name of services"),
    **dict.fromkeys(("metadata", "properties", "options", "details"), "config"),
    **dict.fromkeys(("file_uris", "get_add_actions", "data_files"), "files()"),
    **dict.fromkeys(("partition_columns", "partitioning"), "config.partition_fields"),
    **dict.fromkeys(("load_as_version", "at", "as_of"), "to_arrow(as_of=...)"),
    **dict.fromkeys(("changes", "load_cdf", "change_feed"), "cdc() or incremental()"),
    **dict.fromkeys(("create_index", "index"), "services.index()"),
    **dict.fromkeys(("describe", "info", "detail"), "stats()"),
    **dict.fromkeys(("set_table_properties", "update_properties", "set_option"), "set_properties()"),
    **dict.fromkeys(("alter_table", "add_column", "rename_column", "update_schema"), "alter()"),
}
"""Names of other libraries for methods of a table."""

MERGE_GUESSES = {
    **dict.fromkeys(("when_matched_update_all", "whenMatchedUpdateAll", "whenMatchedUpdate"), "when_matched_update()"),
    **dict.fromkeys(("whenMatchedDelete", "when_matched"), "when_matched_delete() or when_matched_update()"),
    **dict.fromkeys(
        ("when_not_matched_insert_all", "whenNotMatchedInsertAll", "whenNotMatchedInsert", "when_not_matched"),
        "when_not_matched_insert()",
    ),
    **dict.fromkeys(
        ("whenNotMatchedBySourceDelete", "whenNotMatchedBySourceUpdate", "when_not_matched_by_source"),
        "when_not_matched_by_source_delete() or when_not_matched_by_source_update(set)",
    ),
    **dict.fromkeys(("merge", "commit", "collect"), "execute()"),
}
"""Names of other libraries for methods of a merge."""


_SORTING = "cluster({'hoodie.clustering.plan.strategy.sort.columns': 'a,b'"

SERVICE_GUESSES = {
    **dict.fromkeys(("optimize", "bin_pack", "rewrite_data_files"), "cluster(), which joins small files, or compact()"),
    **dict.fromkeys(("sort", "order_by", "sort_by"), f"{_SORTING}}})"),
    **dict.fromkeys(
        ("z_order", "zorder", "z_order_by"), f"{_SORTING}, 'hoodie.layout.optimize.strategy': 'z-order'}})"
    ),
    **dict.fromkeys(("vacuum", "expire_snapshots", "remove_orphan_files", "cleanup"), "clean(), or repair()"),
    **dict.fromkeys(("create_index", "build_index"), "index(kind, columns)"),
    **dict.fromkeys(("snapshot", "tag", "create_savepoint"), "savepoint()"),
    **dict.fromkeys(("fsck", "check", "verify"), "validate(), or repair()"),
}
"""Names of other libraries for the services of a table."""


def new_name(owner: str, name: str, known: Iterable[str]) -> str | None:
    """The present name of a renamed call, after a ``FutureWarning``; None if the owner never had such a call.

    Args:
        owner: of the name, as a user writes it.
        name: the requested name.
        known: existing names.
    """
    present = RENAMED.get(name)
    if present is None or present not in known:
        return None
    warnings.warn(
        f"{owner}.{name} is now {owner}.{present}; the next release has the new name only.",
        FutureWarning,
        stacklevel=3,
    )
    return present


def missing(owner: str, name: str, guesses: Mapping[str, str], known: Iterable[str]) -> AttributeError:
    """The error for a name that an object lacks, with the name that was probably meant.

    Args:
        owner: of the name, as a user writes it.
        name: the requested name.
        guesses: names of this library by the names of other libraries.
        known: existing names.
    """
    text = f"{owner} has no attribute {name!r}"
    close = difflib.get_close_matches(name, [one for one in known if not one.startswith("_")], 1, 0.75)
    if name in guesses:
        text = f"{text}; use {guesses[name]}"
    elif close:
        text = f"{text}; did you mean {close[0]!r}?"
    return AttributeError(text)
