"""Storage options: the names that several libraries use for one option, and values hidden from representations.

Keys are case-insensitive. No message of this module contains a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from hudi_fast.errors import ConfigError

__all__ = [
    "TIMEOUT",
    "StorageOptions",
    "checked_options",
    "checked_url",
    "connection_options",
    "is_encryption",
    "is_true",
    "timeout_of",
]

TIMEOUT = 15.0
"""Seconds to wait for an answer of a store, unless the storage option ``timeout`` is set."""

_LONGEST_TIMEOUT = 3600

_ENCRYPTION = ("parquet.crypto.", "parquet.encryption.", "hudi_fast.kms.")


class StorageOptions(Mapping[str, Any]):
    """Options whose representation shows only their names. Picklable: workers need the values.

    Args:
        options: name -> value.

    Raises:
        ConfigError: not a mapping with text keys.
    """

    __slots__ = ("_values",)

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        if options is not None and not isinstance(options, Mapping):
            raise ConfigError(f"storage_options must be a mapping of names to values, not {type(options).__name__}.")
        wrong = [type(name).__name__ for name in options or () if not isinstance(name, str)]
        if wrong:
            raise ConfigError(f"The names of storage_options must be texts; found {wrong[0]}.")
        self._values = dict(options or {})

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name!r}: ***" for name in sorted(self._values)) + "}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._values,)


def is_encryption(name: str) -> bool:
    """Whether an option is about the encryption of files, and not about the connection to the storage."""
    return name.startswith(_ENCRYPTION)


def connection_options(options: Mapping[str, Any]) -> StorageOptions:
    """The options, without the options of encryption."""
    return StorageOptions({name: value for name, value in options.items() if not is_encryption(name)})


def checked_options(options: Mapping[str, Any], names: Mapping[str, str], where: str) -> dict[str, str]:
    """Options under their canonical names; None and empty values are dropped.

    Args:
        options: as given by the user.
        names: canonical name -> other names for it, separated by spaces.
        where: purpose of the options, for messages.

    Raises:
        ConfigError: a name is unknown, or two names for one option have different values.
    """
    known = {name: own for own, others in names.items() for name in (own, *others.split())}
    found: dict[str, str] = {}
    given_as: dict[str, str] = {}
    for name, value in options.items():
        own = known.get(name.lower())
        if own is None:
            raise ConfigError(
                f"The storage option {name!r} is unknown for {where}. Known are {', '.join(sorted(names))}, and other "
                f"libraries' names for them."
            )
        text = str(value).strip().lower() if isinstance(value, bool) else "" if value is None else str(value).strip()
        if not text:
            continue
        if found.get(own, text) != text:
            raise ConfigError(f"The storage options {given_as[own]!r} and {name!r} contradict each other; set one.")
        found[own], given_as[own] = text, name
    return found


def is_true(options: Mapping[str, str], name: str, default: bool = False) -> bool:
    """A boolean option of :func:`checked_options`.

    Raises:
        ConfigError: the value is not a boolean.
    """
    text = options.get(name)
    if text is None:
        return default
    if text.lower() not in ("true", "false", "1", "0", "yes", "no"):
        raise ConfigError(f"The storage option {name} must be true or false.")
    return text.lower() in ("true", "1", "yes")


def timeout_of(options: Mapping[str, str]) -> float:
    """The option ``timeout`` of :func:`checked_options`, in seconds.

    Raises:
        ConfigError: the value is not a number of seconds.
    """
    try:
        seconds = float(options.get("timeout", TIMEOUT))
    except ValueError:
        seconds = 0
    if not 0 < seconds <= _LONGEST_TIMEOUT:
        raise ConfigError(
            f"The storage option timeout must be a number of seconds, above 0 and up to {_LONGEST_TIMEOUT}."
        )
    return seconds


def checked_url(text: str, name: str) -> str:
    """The address of a server, without a trailing slash.

    Args:
        text: as given by the user.
        name: of the option, for messages.

    Raises:
        ConfigError: it is not ``http://`` or ``https://``, a host and a port; some clients crash on such an address.
    """
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        valid = valid and "@" not in parts.netloc and not parts.query and not parts.fragment
    except ValueError:  # an invalid port, or an invalid address in brackets
        valid = False
    if not valid or any(one.isspace() for one in text):
        raise ConfigError(f"{name} must be http:// or https://, a host and a port, without a user.")
    return text.rstrip("/")
