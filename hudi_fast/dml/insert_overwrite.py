"""``INSERT OVERWRITE``: which partitions it replaces (``ProvidesHoodieConfig.deduceOverwriteConfig``, Hudi 1.2.0).

======================================  ==================================================================
the write operation names an overwrite  that operation
the table has no partitions             all rows
DYNAMIC                                 the partitions that receive rows
STATIC, no ``PARTITION`` clause         all rows
STATIC, ``PARTITION (a = 1, b)``        the partitions that match the clause, whether they receive rows or not
======================================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["overwrite_options"]

_OPERATION = "hoodie.datasource.write.operation"
_PARTITIONS = "hoodie.static.overwrite.partition.paths"
_OVERWRITES = ("insert_overwrite", "insert_overwrite_table")


def overwrite_options(
    operation: str, mode: str, is_partitioned: bool, clause: Mapping[str, object], matching: Callable[[], Sequence[str]]
) -> dict[str, str]:
    """The options of the write that executes an ``INSERT OVERWRITE``.

    Args:
        operation: as the options name it; ignored if it is not an overwrite.
        mode: ``STATIC`` or ``DYNAMIC``, in any case.
        is_partitioned: whether the table has partition columns.
        clause: the ``PARTITION`` clause; empty without one.
        matching: paths of the partitions that match it.

    Raises:
        ConfigError: an unknown mode.
        UnsupportedFeatureError: the path of a matching partition has a comma.
    """
    if operation.lower() in _OVERWRITES:
        return {_OPERATION: operation.lower()}
    if mode.upper() not in ("STATIC", "DYNAMIC"):
        raise ConfigError(f"hoodie.datasource.overwrite.mode={mode!r} is not valid; valid values: STATIC, DYNAMIC.")
    is_static = mode.upper() == "STATIC"
    if not is_partitioned or (is_static and not clause):
        return {_OPERATION: "insert_overwrite_table"}
    if not is_static:
        return {_OPERATION: "insert_overwrite"}
    paths = matching()
    if odd := [path for path in paths if "," in path]:
        raise UnsupportedFeatureError(
            f"INSERT OVERWRITE of the partitions {odd} is not supported, because their paths have commas; truncate "
            "them and insert, or set hoodie.datasource.overwrite.mode=DYNAMIC."
        )
    return {_OPERATION: "insert_overwrite", _PARTITIONS: ",".join(paths)}
