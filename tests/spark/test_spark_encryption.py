"""A session that encrypts Parquet files encrypts base files, and reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.spark.storage import reached_by_spark, storage_of
from tests.formats.test_formats_parquet_encryption import OWN, contents
from tests.support.sessions import hadoop_settings
from tests.support.small_tables import options


@pytest.fixture
def encrypting(spark: Any) -> Iterator[Any]:
    with hadoop_settings(spark, OWN):
        yield spark


def rows(spark: Any, ts: int) -> Any:
    return spark.range(40).selectExpr(
        "concat('k', id) as id", "concat('p', id % 2) as part", f"{ts} as ts", "concat('a-marked-', id) as text"
    )


@pytest.mark.smoke
@pytest.mark.parametrize("plan", [pytest.param("fused", marks=pytest.mark.long), "routed"])
def test_tasks_write_and_read_encrypted_files(plan: str, encrypting: Any, tmp_path: Path) -> None:
    for ts in (1, 2):
        hf.write(rows(encrypting, ts), tmp_path, {**options(), "hudi_fast.plan": plan})
    assert {one.read_bytes()[-4:] for one in tmp_path.glob("p*/*.parquet")} == {b"PARE"}
    assert b"a-marked" not in contents(tmp_path)
    found = hf.read(encrypting, tmp_path, filter="text = 'a-marked-7'").collect()
    assert [(row.id, row.ts) for row in found] == [("k7", 2)]
    assert hf.HudiTable.open(tmp_path, OWN).to_arrow().num_rows == 40


def test_settings_of_the_session_count_as_for_spark_s_own_files(spark: Any, tmp_path: Path) -> None:
    assert dict(storage_of(spark, tmp_path).options) == {}
    for name, value in OWN.items():
        spark.conf.set(name, value)
    try:
        assert dict(storage_of(spark, tmp_path).options) == OWN
    finally:
        for name in OWN:
            spark.conf.unset(name)


def test_spark_scans_encrypted_files_itself_only_with_a_kms_client_in_java(encrypting: Any, tmp_path: Path) -> None:
    assert not reached_by_spark(encrypting, storage_of(encrypting, tmp_path))
    with hadoop_settings(encrypting, {"parquet.encryption.kms.client.class": "com.example.Kms"}):
        assert reached_by_spark(encrypting, storage_of(encrypting, tmp_path))
