"""Partitions of a table by the values of their columns, as SQL names them: ``PARTITION (day = '2024-05-01')``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError
from hudi_fast.keys.partition_path import stored_values
from hudi_fast.view.slices import TableView, latest_slices

__all__ = ["live_partitions", "partitions_of_clause"]


def live_partitions(view: TableView) -> list[str]:
    """Paths of the partitions that have rows, sorted."""
    replaced = {partition for partition, _ in view.replaced}
    return sorted(path for path in view.lister.partitions() if path not in replaced or latest_slices(view, path))


def partitions_of_clause(
    config: TableConfig,
    paths: Iterable[str],
    clause: Mapping[str, str | None],
    constant: Callable[[str], object],
    table: str,
) -> list[str]:
    """The partition paths that a ``PARTITION`` clause matches.

    Args:
        config: configuration of the table.
        paths: partition paths.
        clause: columns, in upper or lower case, with their values as expressions; without a value, any value matches.
        constant: the value of an expression.
        table: name of the table in messages.

    Raises:
        ConfigError: the table is not partitioned by one of the columns.
    """
    names = list(config.partition_fields)
    by_lower = {name.lower(): name for name in names}
    unknown = [name for name in clause if name.lower() not in by_lower]
    if unknown:
        raise ConfigError(f"The table {table} is partitioned by {names}, not by {unknown}.")
    wanted = {by_lower[name.lower()]: _text(constant(said)) for name, said in clause.items() if said is not None}
    if not wanted:
        return list(paths)
    found = []
    for path in paths:
        stored = stored_values(path, config)
        if stored is not None and all(stored[name] == text for name, text in wanted.items()):
            found.append(path)
    return found


def _text(value: object) -> str | None:
    """The text of a value in a path; None for null."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
