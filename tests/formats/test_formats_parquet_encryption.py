"""Parquet's encryption by the settings of its Java library: what is encrypted, what is refused, what a KMS may do."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet.encryption as pe
import pytest

import hudi_fast as hf
from hudi_fast.formats.parquet.encryption import encryption_of, visible_columns, writes_encrypted
from hudi_fast.storage.base import Storage
from tests.support.small_tables import options, plain_rows, rows_of

PREFIX = "parquet.encryption."
MASTERS = {name: bytes([number]) * 16 for number, name in enumerate("fc", 1)}
BY_LIST = {
    "parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
    "parquet.encryption.kms.client.class": "org.apache.parquet.crypto.keytools.mocks.InMemoryKMS",
    "parquet.encryption.key.list": ", ".join(f"{k}: {base64.b64encode(v).decode()}" for k, v in MASTERS.items()),
}
COLUMN = {**BY_LIST, f"{PREFIX}footer.key": "f", f"{PREFIX}column.keys": "c:text"}
UNIFORM = {**BY_LIST, f"{PREFIX}uniform.key": "c"}
ROWS = plain_rows(range(20), text="a-marked-text-")


class OwnKms(pe.KmsClient):
    """A KMS that xors keys; the access token is its password."""

    def __init__(self, connection: pe.KmsConnectionConfig) -> None:
        super().__init__()
        if connection.key_access_token != "a-token":
            raise PermissionError("the token is refused")

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(bytes(one ^ 85 for one in key_bytes))

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return bytes(one ^ 85 for one in base64.b64decode(wrapped_key))


OWN = {
    "parquet.crypto.factory.class": BY_LIST["parquet.crypto.factory.class"],
    "hudi_fast.kms.client.class": f"{__name__}:OwnKms",
    f"{PREFIX}footer.key": "any",
    f"{PREFIX}key.access.token": "a-token",
}


def contents(path: Path) -> bytes:
    return b"".join(one.read_bytes() for one in sorted(path.rglob("*")) if one.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("secret", [COLUMN, UNIFORM, OWN], ids=["column", "uniform", "own"])
def test_no_byte_of_the_table_shows_an_encrypted_value(secret: dict[str, str], tmp_path: Path) -> None:
    hf.write(ROWS, tmp_path, options(), storage_options=secret)
    hf.write(ROWS.slice(3, 4), tmp_path, options(), storage_options=secret)
    table = hf.HudiTable.open(tmp_path, secret)
    assert rows_of(table.to_arrow(filter="text = 'a-marked-text-4'")) == rows_of(ROWS.slice(4, 1))
    table.services.cluster(options=options())
    assert rows_of(table.to_arrow()) == rows_of(ROWS)
    assert table.services.validate().differences.num_rows == 0
    assert b"a-marked-text" not in contents(tmp_path)
    assert {one.read_bytes()[-4:] for one in tmp_path.glob("p*/*.parquet")} == {b"PARE"}
    for value in (*MASTERS.values(), b"a-token"):
        assert base64.b64encode(value) not in contents(tmp_path)
    assert "a-token" not in repr(table) + repr(encryption_of(Storage(tmp_path, secret)))


def test_footers_may_stay_plain_and_show_no_encrypted_value(tmp_path: Path) -> None:
    secret = {**COLUMN, f"{PREFIX}plaintext.footer": "true"}
    hf.write(ROWS, tmp_path, options(), storage_options=secret)
    assert {one.read_bytes()[-4:] for one in tmp_path.glob("p*/*.parquet")} == {b"PAR1"}
    assert b"a-marked-text" not in contents(tmp_path)
    assert rows_of(hf.HudiTable.open(tmp_path, secret).to_arrow()) == rows_of(ROWS)
    with pytest.raises(hf.ConfigError, match="encrypted and cannot be decrypted"):
        hf.HudiTable.open(tmp_path).to_arrow(["text"])


def test_files_from_before_are_read_and_rewritten_encrypted(tmp_path: Path) -> None:
    hf.write(ROWS, tmp_path, options())
    hf.write(ROWS.slice(0, 1), tmp_path, options(), storage_options=COLUMN)
    assert rows_of(hf.HudiTable.open(tmp_path, COLUMN).to_arrow()) == rows_of(ROWS)
    newest = max(tmp_path.glob("p0/*.parquet"), key=lambda one: one.name.rpartition("_")[2])
    assert newest.read_bytes()[-4:] == b"PARE"


def test_settings_without_keys_only_read(tmp_path: Path) -> None:
    hf.write(ROWS, tmp_path, options(), storage_options=COLUMN)
    assert rows_of(hf.HudiTable.open(tmp_path, BY_LIST).to_arrow()) == rows_of(ROWS)
    assert not writes_encrypted(Storage(tmp_path, BY_LIST))
    assert encryption_of(Storage(tmp_path)) is None
    assert visible_columns(Storage(tmp_path, COLUMN), ["id", "text"]) == ["id"]
    assert visible_columns(Storage(tmp_path, UNIFORM), ["id", "text"]) == []


@pytest.mark.parametrize(
    ("secret", "settings", "message"),
    [
        (COLUMN, {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}, "log files"),
        (COLUMN, {"hoodie.table.cdc.enabled": "true"}, "change logs"),
        (UNIFORM, {"hoodie.metadata.record.index.enable": "true"}, "record_index"),
        ({**UNIFORM, f"{PREFIX}plaintext.footer": "true"}, {}, "plain footers"),
        ({**COLUMN, f"{PREFIX}column.keys": "c:id"}, {}, "must name it, too"),
    ],
)
def test_a_table_that_would_show_encrypted_values_is_refused(
    secret: dict[str, str], settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(hf.UnsupportedFeatureError, match=message):
        hf.write(ROWS, tmp_path, {**options(), **settings}, storage_options=secret)
    assert not list(tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"parquet.crypto.factory.class": "com.example.Own"}, hf.UnsupportedFeatureError, "com.example.Own"),
        ({f"{PREFIX}key.material.store.internally": "false"}, hf.UnsupportedFeatureError, "internally=false"),
        ({f"{PREFIX}algorithm": "ROT13"}, hf.ConfigError, "ROT13"),
        ({f"{PREFIX}column.keys": "c=text"}, hf.ConfigError, "form key:column"),
        ({f"{PREFIX}column.keys": "c:nothing"}, hf.ConfigError, "'nothing', which base files do not have"),
        ({f"{PREFIX}column.keys": "z:text"}, hf.ConfigError, "wrapped no key with 'f', 'z'"),
        ({f"{PREFIX}footer.key": ""}, hf.ConfigError, r"needs parquet\.encryption\.footer\.key"),
        ({f"{PREFIX}uniform.key": "c"}, hf.ConfigError, "set either"),
        ({f"{PREFIX}data.key.length.bits": "100"}, hf.ConfigError, "one of 128, 192, 256"),
        ({f"{PREFIX}kms.client.class": "com.example.Kms"}, hf.ConfigError, "class of Java"),
        ({"hudi_fast.kms.client.class": "no.such.Kms"}, hf.ConfigError, r"no\.such\.Kms cannot be imported"),
        ({f"{PREFIX}key.list": "f: ???"}, hf.ConfigError, "'f' is not base64"),
    ],
)
def test_wrong_settings_write_nothing(
    changes: dict[str, str], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        hf.write(ROWS, tmp_path, options(), storage_options={**COLUMN, **changes})
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_kms_that_refuses_is_named(tmp_path: Path) -> None:
    with pytest.raises(hf.ConfigError, match=r"PermissionError: the token is refused.*hudi_fast\.kms\.client\.class"):
        hf.write(ROWS, tmp_path, options(), storage_options={**OWN, f"{PREFIX}key.access.token": "another"})


def test_a_reader_without_the_key_of_a_column_is_refused(tmp_path: Path) -> None:
    hf.write(ROWS, tmp_path, options(), storage_options=COLUMN)
    footers = {**BY_LIST, f"{PREFIX}key.list": BY_LIST[f"{PREFIX}key.list"].partition(",")[0]}
    with pytest.raises(hf.ConfigError, match="no key of a column: KeyError"):
        hf.HudiTable.open(tmp_path, footers).to_arrow(["id"])


def test_nan_in_an_encrypted_file_is_refused(tmp_path: Path) -> None:
    rows = ROWS.append_column("share", pa.array([float("nan")] * 20))
    with pytest.raises(hf.UnsupportedFeatureError, match="share has some"):
        hf.write(rows, tmp_path, options(), storage_options=COLUMN)
