"""Encrypted base files: Apache Hudi reads ours and we read its, with the key management of Parquet's own tests."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

import hudi_fast as hf
from tests.interop.sides import after_upsert, data_columns, trip_options, trips
from tests.peer.client import RealHudi
from tests.servers.maven_jars import PARQUET_TESTS, maven_jars
from tests.support.jvm import FETCHED
from tests.support.rows import assert_same_rows

pytestmark = pytest.mark.peer

KEYS = {name: base64.b64encode(bytes([number]) * 16).decode() for number, name in enumerate(("footer", "notes"), 1)}
ENCRYPTION = {
    "parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
    "parquet.encryption.kms.client.class": "org.apache.parquet.crypto.keytools.mocks.InMemoryKMS",
    "parquet.encryption.key.list": ", ".join(f"{name}: {key}" for name, key in KEYS.items()),
    "parquet.encryption.footer.key": "footer",
    "parquet.encryption.column.keys": "notes:note",
}


@pytest.fixture
def hudi() -> Iterator[RealHudi]:
    """Apache Hudi in a session with these settings, and Parquet's tests on its class path."""
    (jar,) = maven_jars(FETCHED, [PARQUET_TESTS])
    session = {f"spark.hadoop.{name}": value for name, value in ENCRYPTION.items()}
    with RealHudi("1.2.0", settings={"spark.jars": str(jar), **session}) as peer:
        yield peer


def test_both_sides_read_and_write_encrypted_files(hudi: RealHudi, tmp_path: Path) -> None:
    options, rows = {**trip_options(9), "hoodie.metadata.enable": "false"}, trips(range(40), note="a secret")
    hf.write(rows, tmp_path, options, storage_options=ENCRYPTION)
    for number, change in enumerate((trips(range(30, 50), ts=2, note="a secret"), trips(range(45, 60), ts=3))):
        assert_same_rows(data_columns(hudi.read(tmp_path)), rows, key=["id"])
        if number:
            hf.write(change, tmp_path, options, storage_options=ENCRYPTION)
        else:
            hudi.write(change, tmp_path, options)
        rows = after_upsert(rows, change)
    table = hf.HudiTable.open(tmp_path, ENCRYPTION)
    assert_same_rows(data_columns(table.to_arrow()), rows, key=["id"])
    files = list(tmp_path.rglob("*.parquet"))
    assert {path.read_bytes()[-4:] for path in files} == {b"PARE"}
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"a secret" in path.read_bytes()]
    with pytest.raises(hf.ConfigError, match="is encrypted and cannot be decrypted"):
        hf.HudiTable.open(tmp_path).to_arrow()
