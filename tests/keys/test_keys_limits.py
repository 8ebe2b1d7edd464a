"""Partition values and record keys that are too long for the storage or the record index are refused before a write."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.keys.key_generator import NO_LIMITS, KeyLimits, limits_of
from hudi_fast.storage.base import Storage
from tests.support.small_tables import listing

W = "hoodie.datasource.write."
RECORD_INDEX = {"hoodie.metadata.global.record.level.index.enable": "true"}
S3 = {"access_key": "a", "secret_key": "b", "region": "us-east-1"}
AZURE = {"account_key": "aGVsbG8="}

LONG_PATHS = {
    "ascii": ("x" * 256, {}, "a part of 256 bytes"),
    "two bytes a letter": ("ü" * 128, {}, "a part of 256 bytes"),
    "hive style": ("x" * 254, {f"{W}hive_style_partitioning": "true"}, "a part of 256 bytes"),
    "escaped": ("/" * 100, {f"{W}partitionpath.urlencode": "true"}, "a part of 300 bytes"),
    "many parts": ("/".join(["x" * 200] * 25), {}, "has 5024 bytes"),
}


def options(**more: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        f"{W}recordkey.field": "id",
        f"{W}partitionpath.field": "p",
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def rows(key: str = "a", partition: str = "p") -> pa.Table:
    return pa.table({"id": ["first", key], "p": ["first", partition], "v": [1, 2]})


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), [("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "9")])
def test_a_path_that_the_disk_cannot_hold_is_refused_before_anything_is_written(
    tmp_path: Path, kind: str, version: str
) -> None:
    own = {f"{W}table.type": kind, "hoodie.write.table.version": version}
    for number, (value, more, said) in enumerate(LONG_PATHS.values()):
        path = tmp_path / str(number)
        hf.write(rows(), path, {**options(), **own, **more})
        before = listing(path)
        for operation in ("upsert", "bulk_insert", "delete"):
            with pytest.raises(hf.InvalidDataError, match=rf"'p' .*{said}.*row 1\b") as caught:
                hf.write(rows(partition=value), path, {**options(), **own, **more, f"{W}operation": operation})
            assert len(str(caught.value)) < 1000
        assert listing(path) == before


@pytest.mark.slow("COPY_ON_WRITE")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_key_that_the_record_index_cannot_hold_is_refused_before_anything_is_written(
    tmp_path: Path, kind: str
) -> None:
    own = {**options(), f"{W}table.type": kind}
    hf.write(rows(), tmp_path / "t", {**own, **RECORD_INDEX})
    before = listing(tmp_path / "t")
    for given in ({**own, **RECORD_INDEX}, own):  # the table keeps its index without the option, too
        with pytest.raises(hf.InvalidDataError, match=r"row 1, .*'id'.* 32768 bytes.*up to 32767"):
            hf.write(rows(key="k" * 32768), tmp_path / "t", given)
    assert listing(tmp_path / "t") == before
    hf.write(rows(key="k" * 32767), tmp_path / "t", own)
    hf.write(rows(key="k" * 40000), tmp_path / "no_index", own)
    assert hf.HudiTable.open(tmp_path / "no_index").count() == 2


@pytest.mark.slow("gs://bucket/a/t-given2-0-821")
@pytest.mark.parametrize(
    ("uri", "given", "part", "path"),
    [
        ("hdfs://host/t", {}, 255, 8000 - 2 - 200),
        ("s3a://bucket/a/t", S3, 0, 1024 - 3 - 200),
        ("gs://bucket/a/t", {"anonymous": "true"}, 0, 1024 - 3 - 200),
        ("abfs://c@account.dfs.core.windows.net/t", AZURE, 0, 1024 - 1 - 200),
        ("memory://t", {}, 0, 0),
    ],
)
def test_each_store_has_its_limits(uri: str, given: dict[str, str], part: int, path: int) -> None:
    if uri.startswith("hdfs"):
        pytest.importorskip("hdfs_native")
    assert limits_of(Storage(uri, given), ()) == KeyLimits(part, path, 0)
    assert limits_of(Storage(uri, given), ("record_index",)).key == 32767


def test_the_quick_way_out_finds_what_counting_finds() -> None:
    texts = ["x" * length for length in range(12)] + ["ü" * length for length in range(8)]
    for part, path in itertools.product((0, 4, 6), (0, 5, 9)):
        for one, other in itertools.product(texts, texts):
            found = KeyLimits(part, path).path_fault(f"{one}/{other}")
            parts = [len(text.encode()) for text in (one, other)]
            assert (found is not None) == bool((part and max(parts) > part) or (path and sum(parts) + 1 > path))
    assert NO_LIMITS.path_fault("x" * 100_000) is None
