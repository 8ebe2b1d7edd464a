"""Parquet modular encryption of base files, with the settings of Parquet's Java library.

::

    options of the storage: parquet.crypto.factory.class, parquet.encryption.*, hudi_fast.kms.client.class
        └─► Encryption ─► for_writing(columns)   a new data key per file and column, wrapped by master keys of the KMS
                      └─► for_reading()          unwraps the keys that a file names

Key material is stored in the files, in the form that Parquet's Java library reads and writes. The KMS client is a
Python class, because tasks that write files run in Python. The KMS of Parquet's own tests, which takes its master keys
from the settings, is built in.

Source: ``PropertiesDrivenCryptoFactory``, ``KeyToolkit``, ``InMemoryKMS`` (parquet-hadoop 1.15); PARQUET-1373.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from functools import lru_cache
from importlib import import_module
from typing import Any

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.option_names import is_encryption
from hudi_fast.values import dataclass

__all__ = [
    "FACTORY",
    "JAVA_CLIENT",
    "SETTINGS",
    "Encryption",
    "encryption_of",
    "visible_columns",
    "without_keys",
    "writes_encrypted",
]

FACTORY = "parquet.crypto.factory.class"
"""Setting that enables encryption."""

KMS_CLIENT = "hudi_fast.kms.client.class"
"""Setting that names the Python class of the KMS client."""

JAVA_CLIENT = "parquet.encryption.kms.client.class"
"""Setting that names the Java class of the KMS client."""

SETTINGS = (
    FACTORY,
    KMS_CLIENT,
    *(
        f"parquet.encryption.{name}"
        for name in (
            "algorithm",
            "cache.lifetime.seconds",
            "column.keys",
            "complete.columns",
            "data.key.length.bits",
            "double.wrapping",
            "footer.key",
            "kek.length.bits",
            "key.access.token",
            "key.list",
            "key.material.store.internally",
            "kms.client.class",
            "kms.instance.id",
            "kms.instance.url",
            "plaintext.footer",
            "uniform.key",
            "wrap.locally",
        )
    ),
)
"""Settings of encryption in a Hadoop configuration."""

_FACTORY_CLASS = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
_IN_MEMORY = "org.apache.parquet.crypto.keytools.mocks.InMemoryKMS"
_KEY_LIST = "parquet.encryption.key.list"
_ALGORITHMS = ("AES_GCM_V1", "AES_GCM_CTR_V1")
_NONCE_BYTES = 12
_KEY_BITS = (128, 192, 256)


@dataclass(frozen=True)
class Encryption:
    """Settings to encrypt and decrypt base files. Representations contain no keys.

    Attributes:
        footer_key: name of the master key of footers; empty if files are only read.
        column_keys: names of columns by name of their master key.
        is_uniform: whether the footer key encrypts all columns.
        plaintext_footer: whether footers are readable without keys.
        algorithm: ``AES_GCM_V1`` or ``AES_GCM_CTR_V1``.
        double_wrapping: whether data keys are wrapped twice, which saves calls of the KMS.
        key_bits: length of data keys.
        cache: time that keys are kept in memory.
        connection: settings of the KMS client.
        make_client: makes the KMS client.
    """

    footer_key: str
    column_keys: Mapping[str, tuple[str, ...]]
    is_uniform: bool
    plaintext_footer: bool
    algorithm: str
    double_wrapping: bool
    key_bits: int
    cache: timedelta
    connection: Mapping[str, Any] = field(repr=False)
    make_client: Callable[[Any], Any] = field(repr=False)
    _checked: list[bool] = field(default_factory=list, repr=False, compare=False)

    @property
    def writes(self) -> bool:
        """Whether new files are encrypted, because the settings name keys."""
        return bool(self.footer_key)

    def hides(self, column: str) -> bool:
        """Whether a column, or a part of it, is encrypted in new files."""
        named = (name for names in self.column_keys.values() for name in names)
        return self.writes and (self.is_uniform or any(name.split(".")[0] == column.split(".")[0] for name in named))

    def for_writing(self, leaves: Sequence[str]) -> Any:
        """Encryption properties of a new file.

        Args:
            leaves: dotted Parquet paths of the file's columns.

        Raises:
            ConfigError: the settings name a column that the file does not have, or the KMS refused a key.
        """
        parquet = import_module("pyarrow.parquet.encryption")
        columns = {
            key: [leaf for name in names for leaf in _below(name, leaves)] for key, names in self.column_keys.items()
        }
        settings = parquet.EncryptionConfiguration(
            footer_key=self.footer_key,
            column_keys={} if self.is_uniform else columns,
            uniform_encryption=self.is_uniform,
            encryption_algorithm=self.algorithm,
            plaintext_footer=self.plaintext_footer,
            double_wrapping=self.double_wrapping,
            cache_lifetime=self.cache,
            internal_key_material=True,
            data_key_length_bits=self.key_bits,
        )
        try:
            return self._factory.file_encryption_properties(self._connection, settings)
        except Exception as error:  # whatever a KMS client raises
            raise ConfigError(
                f"The key management system wrapped no key with {', '.join(map(repr, (self.footer_key, *columns)))}: "
                f"{type(error).__name__}: {error}. Check {KMS_CLIENT} and the names of the master keys."
            ) from error

    def for_reading(self) -> Any:
        """Decryption properties; they also work for files that are not encrypted."""
        settings = import_module("pyarrow.parquet.encryption").DecryptionConfiguration(cache_lifetime=self.cache)
        return self._factory.file_decryption_properties(self._connection, settings)

    def check_keys(self, file: Any) -> None:
        """Check with the first file of a process that the KMS returns the keys of all columns.

        Arrow ends the process when it reads the footer's entry of a column without a key (pyarrow 26).

        Args:
            file: an open ``pyarrow.parquet.ParquetFile``.

        Raises:
            ConfigError: the KMS refused a key.
        """
        if self._checked or not file.metadata.num_row_groups:
            return
        try:
            next(file.iter_batches(1, row_groups=[0]), None)
        except Exception as error:  # whatever a KMS client raises
            raise ConfigError(
                f"The key management system gave no key of a column: {type(error).__name__}: {error}. hudi_fast needs "
                "the keys of all columns of a file."
            ) from error
        self._checked.append(True)

    @property
    def _factory(self) -> Any:
        return import_module("pyarrow.parquet.encryption").CryptoFactory(self.make_client)

    @property
    def _connection(self) -> Any:
        return import_module("pyarrow.parquet.encryption").KmsConnectionConfig(**self.connection)


def encryption_of(storage: Storage) -> Encryption | None:
    """The encryption of a table's base files; None without the setting ``parquet.crypto.factory.class``.

    Raises:
        ConfigError: a setting is invalid.
        UnsupportedFeatureError: hudi_fast does not support a setting.
    """
    settings = {key: str(value) for key, value in storage.options.items() if is_encryption(key)}
    return _parsed(tuple(sorted(settings.items()))) if settings.get(FACTORY) else None


@lru_cache(maxsize=1)
def without_keys() -> Any:
    """Decryption properties that refuse encrypted files. Without them Arrow would end the process (pyarrow 26)."""
    parquet = import_module("pyarrow.parquet.encryption")

    def refuse(_: Any) -> Any:
        raise OSError("it is encrypted, and there are no settings of its encryption")

    factory = parquet.CryptoFactory(refuse)
    return factory.file_decryption_properties(parquet.KmsConnectionConfig(), parquet.DecryptionConfiguration())


def writes_encrypted(storage: Storage) -> bool:
    """Whether new base files of a table are encrypted."""
    found = encryption_of(storage)
    return found is not None and found.writes


def visible_columns(storage: Storage, columns: Sequence[str]) -> list[str]:
    """The columns that new base files of a table do not encrypt."""
    found = encryption_of(storage)
    return [name for name in columns if found is None or not found.hides(name)]


@lru_cache(maxsize=16)
def _parsed(items: tuple[tuple[str, str], ...]) -> Encryption:
    given = dict(items)

    def text(name: str, default: str = "") -> str:
        return given.get(f"parquet.encryption.{name}", default).strip()

    def flag(name: str, default: bool) -> bool:
        return text(name, str(default)).lower() == "true"

    if given[FACTORY] != _FACTORY_CLASS:
        raise UnsupportedFeatureError(
            f"{FACTORY}={given[FACTORY]} is not supported, and files would not be encrypted as it says; supported: "
            f"{_FACTORY_CLASS}."
        )
    for name, supported in (
        ("key.material.store.internally", "true"),
        ("wrap.locally", "false"),
        ("complete.columns", "false"),
        ("kek.length.bits", "128"),
    ):
        if text(name, supported).lower() != supported:
            raise UnsupportedFeatureError(
                f"parquet.encryption.{name}={text(name)} is not supported; supported: {supported}."
            )
    algorithm, uniform = text("algorithm", _ALGORITHMS[0]), text("uniform.key")
    if algorithm not in _ALGORITHMS:
        raise ConfigError(f"parquet.encryption.algorithm={algorithm} is unknown; use one of {', '.join(_ALGORITHMS)}.")
    footer, columns = text("footer.key"), _column_keys(text("column.keys"))
    if uniform and (footer or columns):
        raise ConfigError("parquet.encryption.uniform.key excludes footer.key and column.keys; set either.")
    if columns and not footer:
        raise ConfigError("parquet.encryption.column.keys needs parquet.encryption.footer.key.")
    return Encryption(
        footer_key=uniform or footer,
        column_keys=columns,
        is_uniform=bool(uniform or not columns),
        plaintext_footer=flag("plaintext.footer", False),
        algorithm=algorithm,
        double_wrapping=flag("double.wrapping", True),
        key_bits=_number(text("data.key.length.bits", "128"), _KEY_BITS),
        cache=timedelta(seconds=_number(text("cache.lifetime.seconds", "600"))),
        connection={
            "kms_instance_id": text("kms.instance.id", "DEFAULT"),
            "kms_instance_url": text("kms.instance.url", "DEFAULT"),
            "key_access_token": text("key.access.token", "DEFAULT"),
            "custom_kms_conf": given,
        },
        make_client=_client_maker(given),
    )


def _column_keys(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for part in filter(None, (one.strip() for one in text.split(";"))):
        key, colon, names = part.partition(":")
        columns = tuple(name.strip() for name in names.split(",") if name.strip())
        if not colon or not key.strip() or not columns or key.strip() in found:
            raise ConfigError(
                "parquet.encryption.column.keys has the form key:column,column;key:column, each key once; this part "
                f"has not: {part!r}."
            )
        found[key.strip()] = columns
    return found


def _number(text: str, allowed: Sequence[int] = ()) -> int:
    if not text.isdigit() or (allowed and int(text) not in allowed):
        names = f"one of {', '.join(map(str, allowed))}" if allowed else "a number of seconds"
        raise ConfigError(f"A setting parquet.encryption.* is {text!r}; expected {names}.")
    return int(text)


def _below(name: str, leaves: Sequence[str]) -> list[str]:
    found = [leaf for leaf in leaves if leaf == name or leaf.startswith(f"{name}.")]
    if not found:
        raise ConfigError(
            f"parquet.encryption.column.keys names the column {name!r}, which base files do not have. Their columns "
            f"are {', '.join(leaves)}."
        )
    return found


# ---- clients of key management systems


def _client_maker(given: Mapping[str, str]) -> Callable[[Any], Any]:
    """The function that makes KMS clients: of the user's Python class, or of the built-in class."""
    named, java = given.get(KMS_CLIENT, "").strip(), given.get(JAVA_CLIENT, "").strip()
    if named:
        module, _, name = named.replace(":", ".").rpartition(".")
        try:
            made: Callable[[Any], Any] = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigError(
                f"{KMS_CLIENT}={named} cannot be imported ({error}). Name a class as package.module.Class; on Spark it "
                "must be importable on every worker."
            ) from error
        return made
    if java != _IN_MEMORY:
        raise ConfigError(
            f"{JAVA_CLIENT}={java} is a class of Java, and files are written in Python. Set "
            f"{KMS_CLIENT} to a Python class with the same effect: a subclass of pyarrow.parquet.encryption.KmsClient."
        )
    keys = _key_list(given.get(_KEY_LIST, ""))
    cipher = import_extra("cryptography.hazmat.primitives.ciphers.aead", "encryption", _IN_MEMORY).AESGCM
    base = import_module("pyarrow.parquet.encryption").KmsClient

    class InMemoryKms(base):  # type: ignore[misc, valid-type]
        """Wraps keys with master keys of the settings."""

        def __init__(self, connection: object) -> None:
            super().__init__()

        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
            nonce, master = os.urandom(_NONCE_BYTES), cipher(_master(keys, master_key_identifier))
            return base64.b64encode(nonce + master.encrypt(nonce, key_bytes, master_key_identifier.encode()))

        def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
            wrapped, name = base64.b64decode(wrapped_key), master_key_identifier.encode()
            master = cipher(_master(keys, master_key_identifier))
            return bytes(master.decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], name))

    return InMemoryKms


def _master(keys: Mapping[str, bytes], name: str) -> bytes:
    if name not in keys:
        raise KeyError(f"{_KEY_LIST} has no key {name!r}")
    return keys[name]


def _key_list(text: str) -> dict[str, bytes]:
    found = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, value = part.partition(":")
        try:
            found[name.strip()] = base64.b64decode(value.strip(), validate=True)
        except binascii.Error:
            raise ConfigError(f"{_KEY_LIST}: the key {name.strip()!r} is not base64.") from None
    return found
