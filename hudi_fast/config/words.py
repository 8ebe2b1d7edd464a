"""Keyword arguments of writes: everyday words for the options that describe a table.

::

    write(rows, path, options, key="id", order_by="ts")
        options ──┐
        words ────┴─► with_words ─► {"hoodie.datasource.write.recordkey.field": "id", ...} ─► as without words

A word is an option by another name: it is checked as the option is, and must not contradict it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

from hudi_fast.config.option_names import INDEX_WORDS, TABLE_TYPE_WORDS, IndexWord, Operation, TableTypeWord
from hudi_fast.errors import ConfigError

__all__ = [
    "TableWords",
    "Words",
    "checked_options",
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
