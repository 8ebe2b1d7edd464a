"""Partition paths as the values of a catalog's partition columns, by Apache Hudi's extractors.

::

    MultiPartKeys      2026/city=Oslo    ─► ("2026", "Oslo")       one value for each folder
    HiveStyle          city=Oslo         ─► ("Oslo",)
    SinglePart         2026/11/26        ─► ("2026-11-26",)        all folders are one value
    SlashEncodedDay    2026/11/26        ─► ("2026-11-26",)        a date
    SlashEncodedHour   2026/11/26/13     ─► ("2026-11-26-13",)
    NonPartitioned     any               ─► ()

Sources: the classes ``org.apache.hudi.hive.*Extractor`` of Apache Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["EXTRACTORS", "default_extractor", "partition_values"]

_P = "org.apache.hudi.hive."


def partition_values(extractor: str, path: str) -> tuple[str, ...]:
    """The values of a partition.

    Args:
        extractor: class of Apache Hudi.
        path: partition path; "" for the partition of an unpartitioned table.

    Returns:
        Empty if the partition does not belong in the catalog.

    Raises:
        UnsupportedFeatureError: an unknown class.
        ConfigError: the path does not fit the extractor.
    """
    if extractor not in EXTRACTORS:
        raise UnsupportedFeatureError(
            f"hoodie.datasource.hive_sync.partition_extractor_class={extractor} is not supported; supported are "
            f"{', '.join(EXTRACTORS)}."
        )
    try:
        return EXTRACTORS[extractor](path)
    except ValueError as error:
        raise ConfigError(
            f"The partition path {path!r} does not fit "
            f"hoodie.datasource.hive_sync.partition_extractor_class={extractor}: {error}."
        ) from error


def default_extractor(partition_columns: int, hive_style: bool) -> str:
    """The class that Apache Hudi chooses.

    Args:
        partition_columns: their number.
        hive_style: whether folders are ``name=value``.
    """
    if partition_columns == 0:
        return f"{_P}NonPartitionedExtractor"
    if partition_columns == 1:
        return f"{_P}HiveStylePartitionValueExtractor" if hive_style else f"{_P}SinglePartPartitionValueExtractor"
    return f"{_P}MultiPartKeysValueExtractor"


def _each_folder(path: str) -> tuple[str, ...]:
    return tuple(_after_equals(one) if "=" in one else one for one in path.split("/")) if path else ()


def _hive_style(path: str) -> tuple[str, ...]:
    return (_after_equals(path),)


def _one_value(path: str) -> tuple[str, ...]:
    return (path.replace("/", "-"),)


def _day(path: str) -> tuple[str, ...]:
    year, month, day = _numbers(path, 3)
    return (f"{datetime(year, month, day):%Y-%m-%d}",)


def _hour(path: str) -> tuple[str, ...]:
    year, month, day, hour = _numbers(path, 4)
    return (f"{datetime(year, month, day, hour):%Y-%m-%d-%H}",)


def _none(path: str) -> tuple[str, ...]:
    return ()


EXTRACTORS: dict[str, Callable[[str], tuple[str, ...]]] = {
    f"{_P}MultiPartKeysValueExtractor": _each_folder,
    f"{_P}HiveStylePartitionValueExtractor": _hive_style,
    f"{_P}SinglePartPartitionValueExtractor": _one_value,
    f"{_P}SlashEncodedDayPartitionValueExtractor": _day,
    f"{_P}SlashEncodedHourPartitionValueExtractor": _hour,
    f"{_P}NonPartitionedExtractor": _none,
}
"""The function of each class."""


def _after_equals(folder: str) -> str:
    parts = folder.split("=")
    if len(parts) != 2 or not parts[1]:
        raise ValueError("expected name=value")
    return parts[1]


def _numbers(path: str, count: int) -> list[int]:
    folders = path.split("/")
    if len(folders) != count:
        raise ValueError(f"expected {count} folders")
    return [int(one.partition("=")[2] or one) for one in folders]
