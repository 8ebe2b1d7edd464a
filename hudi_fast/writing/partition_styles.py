"""How a table's partition paths write times. No property records it, so the stored paths decide.

======================================  ========================================  ==========================
a timestamp column is written as        by Apache Hudi                            here
======================================  ========================================  ==========================
``1704477600789000``                    DataFrames                                by default
``2024-01-05 18:00:00.789``             DataFrames, with the option               with the option
                                        ``consistent.logical.timestamp.enabled``
``2024-01-05 18%3A00%3A00``             SQL                                       if the table has such paths
======================================  ========================================  ==========================

If a row's path were written in another way, its key would be stored in two partitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from hudi_fast.errors import ConfigError
from hudi_fast.keys.key_generator import KeyConfig
from hudi_fast.keys.partition_path import stored_values
from hudi_fast.view.table_state import TableState, table_schema

__all__ = ["with_stored_styles"]

_OPTION = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
_NUMBER, _TEXT, _SQL = "the stored number", "date, time and fraction", "date and time, as Spark SQL writes them"
_FORMS = {
    _NUMBER: re.compile(r"-?\d+"),
    _TEXT: re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+"),
    _SQL: re.compile(r"\d{4}-\d\d-\d\d \d\d(:|%3A)\d\d(:|%3A)\d\d"),
}


def with_stored_styles(keys: KeyConfig, state: TableState) -> KeyConfig:
    """The settings of paths that fit the partitions of a table.

    Args:
        keys: by the table's properties and the user's options.
        state: the table.

    Raises:
        ConfigError: the paths of the table hold timestamps as text but the option is off, or the other way round.
    """
    if not keys.partition_fields or keys.kind == "NON_PARTITION":
        return keys
    schema = table_schema(state) or pa.schema([])
    typed = [name for name in keys.partition_fields if name in schema.names]
    if any(pa.types.is_string(schema.field(name).type) and keys.is_timestamp_field(name) for name in typed):
        keys = replace(keys, numbers_as_text=True)
    times = [name for name in typed if _is_instant(schema.field(name).type) and not keys.is_timestamp_field(name)]
    found = set(_styles(state, times)) if times else set()
    if found == {_SQL}:
        return replace(keys, sql_timestamps=True)
    wanted = _TEXT if keys.consistent_logical_timestamp else _NUMBER
    if found and wanted not in found:
        raise ConfigError(
            f"The partition paths of {state.storage.uri} hold the timestamps of {', '.join(times)} as "
            f"{' and as '.join(sorted(found))}; this write would put rows of stored keys into other partitions, as "
            f"{wanted}. Set {_OPTION}={str(wanted == _NUMBER).lower()} as the writers of the table."
        )
    return keys


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is not None


def _styles(state: TableState, names: list[str]) -> Iterator[str]:
    """The forms in which the partition paths hold some fields."""
    for path in state.view.lister.partitions():
        values = stored_values(path, state.config) or {}
        texts = [text for name in names if (text := values.get(name)) is not None]
        yield from (style for text in texts for style, form in _FORMS.items() if form.fullmatch(text))
