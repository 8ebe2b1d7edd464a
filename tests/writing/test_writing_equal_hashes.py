"""Tables whose record keys differ and have equal hashes: lookups, logs, bloom filters, the record index, change data.

What compares such keys is :mod:`hudi_fast.kernels.key_table`; these tests show that nothing above it relies on hashes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from tests.support.equal_hashes import equal_hashes, hashes_of
from tests.support.small_tables import options

KEYS = [key for group in equal_hashes() for key in group]
INDEXES: dict[str, dict[str, Any]] = {
    "SIMPLE": {},
    "BLOOM": {},
    "GLOBAL_SIMPLE": {},
    "GLOBAL_BLOOM": {},
    "RECORD_LEVEL_INDEX": {"hoodie.metadata.record.level.index.enable": True},
    "GLOBAL_RECORD_LEVEL_INDEX": {"hoodie.metadata.global.record.level.index.enable": True},
    "BUCKET": {"hoodie.bucket.index.num.buckets": 2},
}


def rows(numbers: list[int], ts: int, text: str) -> pa.Table:
    """Rows of :data:`KEYS`, in two partitions."""
    return pa.table(
        {
            "id": pa.array([KEYS[number] for number in numbers], pa.string()),
            "part": pa.array([f"p{number % 2}" for number in numbers], pa.string()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "text": pa.array([f"{text}{number}" for number in numbers], pa.string()),
        }
    )


def texts(path: Path) -> dict[str, str]:
    read = hf.HudiTable.open(path).to_arrow(columns=["id", "text"]).to_pylist()
    assert len(read) == len({row["id"] for row in read})
    return {row["id"]: row["text"] for row in read}


def test_the_keys_have_equal_hashes() -> None:
    assert [len(set(hashes_of(group).tolist())) for group in equal_hashes()] == [1, 1, 1]
    assert len(set(KEYS)) == 12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("index", "kind"),
    [
        ("SIMPLE", "MERGE_ON_READ"),
        ("BLOOM", "COPY_ON_WRITE"),
        ("GLOBAL_BLOOM", "MERGE_ON_READ"),
        ("RECORD_LEVEL_INDEX", "COPY_ON_WRITE"),
        ("GLOBAL_RECORD_LEVEL_INDEX", "MERGE_ON_READ"),
        ("BUCKET", "COPY_ON_WRITE"),
        pytest.param("BUCKET", "MERGE_ON_READ", marks=pytest.mark.long),
        pytest.param("GLOBAL_SIMPLE", "COPY_ON_WRITE", marks=pytest.mark.long),
    ],
)
def test_rows_find_their_own_key(index: str, kind: str, tmp_path: Path) -> None:
    settings = {
        **options(index=index),
        **INDEXES[index],
        "hoodie.datasource.write.table.type": kind,
        "hoodie.parquet.small.file.limit": 0,  # a file group for each write and partition
    }
    expected: dict[str, str] = {}

    def write(numbers: list[int], ts: int, text: str, operation: str = "upsert") -> None:
        named = {**settings, "hoodie.datasource.write.operation": operation}
        hf.write(rows(numbers, ts, text), tmp_path, named)
        for number in numbers:
            expected[KEYS[number]] = f"{text}{number}"
            if operation == "delete":
                del expected[KEYS[number]]
        assert texts(tmp_path) == expected

    write([0, 3, 6, 9], 1, "first")
    write([1, 3, 4, 6, 7, 10], 2, "second")  # new keys with the hashes of stored ones, and stored keys
    write(list(range(12)), 3, "third")
    write([2, 3, 8, 11], 4, "gone", "delete")
    write([0, 3, 6, 7, 11] * 2, 5, "fifth")
    if kind == "MERGE_ON_READ":
        hf.HudiTable.open(tmp_path).services.compact()
        assert texts(tmp_path) == expected
    few = [KEYS[number] for number in (0, 1, 2, 5)]  # three of them are stored
    found = hf.HudiTable.open(tmp_path).to_arrow(columns=["id", "text"], filter=pc.field("id").isin(few))
    assert {row["id"]: row["text"] for row in found.to_pylist()} == {
        key: expected[key] for key in few if key in expected
    }


def test_changes_of_such_keys_have_their_own_images(tmp_path: Path) -> None:
    settings = {
        **options(),
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.table.cdc.enabled": True,
        "hoodie.table.cdc.supplemental.logging.mode": "OP_KEY_ONLY",
    }
    first = hf.write(rows(list(range(12)), 1, "first"), tmp_path, settings)
    assert first is not None
    hf.write(rows([0, 3, 6, 7, 9], 2, "second"), tmp_path, settings)
    changes = hf.HudiTable.open(tmp_path).cdc(first.instant)
    images = [(json.loads(row["before"]), json.loads(row["after"])) for row in changes.to_pylist()]
    assert sorted((old["id"], old["text"], new["id"], new["text"]) for old, new in images) == sorted(
        (KEYS[number], f"first{number}", KEYS[number], f"second{number}") for number in (0, 3, 6, 7, 9)
    )
