"""Partition paths as values of a catalog."""

from __future__ import annotations

import pytest

from hudi_fast.catalogs.sync import EXTRACTORS, default_extractor, partition_values
from hudi_fast.errors import ConfigError, UnsupportedFeatureError

P = "org.apache.hudi.hive."


@pytest.mark.parametrize(
    ("extractor", "path", "values"),
    [
        ("MultiPartKeysValueExtractor", "2026/city=Oslo", ("2026", "Oslo")),
        ("MultiPartKeysValueExtractor", "", ()),
        ("HiveStylePartitionValueExtractor", "city=Oslo", ("Oslo",)),
        ("SinglePartPartitionValueExtractor", "2026/11/26", ("2026-11-26",)),
        ("SlashEncodedDayPartitionValueExtractor", "2026/1/6", ("2026-01-06",)),
        ("SlashEncodedDayPartitionValueExtractor", "year=2026/month=01/day=06", ("2026-01-06",)),
        ("SlashEncodedHourPartitionValueExtractor", "2026/01/06/7", ("2026-01-06-07",)),
        ("NonPartitionedExtractor", "anything", ()),
    ],
)
def test_values_of_a_path(extractor: str, path: str, values: tuple[str, ...]) -> None:
    assert partition_values(P + extractor, path) == values


@pytest.mark.parametrize(
    ("extractor", "path"),
    [
        ("HiveStylePartitionValueExtractor", "Oslo"),
        ("MultiPartKeysValueExtractor", "a=b=c"),
        ("SlashEncodedDayPartitionValueExtractor", "2026/11"),
        ("SlashEncodedDayPartitionValueExtractor", "2026/13/01"),
        ("SlashEncodedHourPartitionValueExtractor", "2026/11/26/noon"),
    ],
)
def test_path_that_does_not_fit_is_refused(extractor: str, path: str) -> None:
    with pytest.raises(ConfigError, match=r"does not fit .*partition_extractor_class=" + P + extractor):
        partition_values(P + extractor, path)


def test_unknown_class_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"com\.shop\.Extractor is not supported"):
        partition_values("com.shop.Extractor", "2026")


@pytest.mark.parametrize(
    ("columns", "hive_style", "extractor"),
    [
        (0, False, "NonPartitionedExtractor"),
        (1, False, "SinglePartPartitionValueExtractor"),
        (1, True, "HiveStylePartitionValueExtractor"),
        (2, True, "MultiPartKeysValueExtractor"),
    ],
)
def test_default_follows_the_folders(columns: int, hive_style: bool, extractor: str) -> None:
    assert default_extractor(columns, hive_style) == P + extractor
    assert P + extractor in EXTRACTORS
