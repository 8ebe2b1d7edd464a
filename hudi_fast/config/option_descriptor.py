"""Description of one option: key, spellings, type, default, range and supported values.

Data flow::

    raw value (str | bool | int | float | list) --Option.parse--> typed value --Option.check_supported--> used

:meth:`Option.parse` raises :class:`ConfigError` for an invalid value; :meth:`Option.check_supported` raises
:class:`UnsupportedFeatureError` for a valid value that hudi_fast does not support. Options of the other family (a read
option in a dictionary for a write) are neither parsed nor checked.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["BOTH", "READ", "WRITE", "Kind", "Option", "text_of"]

READ = ("read",)
WRITE = ("write",)
BOTH = ("read", "write")
"""Families of options: used by reads, by writes, or by both."""


class Kind(enum.Enum):
    """Type of an option's value."""

    BOOL = "boolean"
    INT = "integer"
    FLOAT = "number"
    TEXT = "text"
    ENUM = "one of"
    LIST = "comma list"
    FUNCTION = "function"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of Apache Hudi (``hoodie.``) or of hudi_fast (``hudi_fast.``).

    Attributes:
        key: spelling in the newest Hudi release.
        kind: type of the value.
        default: typed value if the key is absent; None if absence has a meaning of its own.
        doc: effect of the option, as shown in docs/options.md.
        aliases: other spellings that a Hudi release accepts.
        unit: unit of a number: bytes, ms, rows ...
        choices: all values that Hudi knows, in the spelling that hudi_fast uses. Matching ignores case.
        spellings: (other spelling that Hudi accepts, choice).
        supported: values (for a list: entries) that hudi_fast supports; None = all; empty = the key is refused.
        minimum: smallest allowed number.
        maximum: largest allowed number.
        exclusive: whether the bounds themselves are excluded.
        families: the calls that use the option: ``read``, ``write`` or both.
        honoured: False if the option has no effect and the result is correct without it.
        loss: for an option that is not honoured: the effect that its user misses; a warning says so if the option is
            set.
        instead: for an option with unsupported values: what to do instead, as a sentence; empty for the general advice.
    """

    key: str
    kind: Kind
    default: Any
    doc: str
    aliases: tuple[str, ...] = ()
    unit: str = ""
    choices: tuple[str, ...] = ()
    spellings: tuple[tuple[str, str], ...] = ()
    supported: tuple[Any, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None
    exclusive: bool = False
    families: tuple[str, ...] = WRITE
    honoured: bool = True
    loss: str = ""
    instead: str = ""

    def __hash__(self) -> int:
        return hash(self.key)  # unique; each call looks options up many times

    @property
    def keys(self) -> tuple[str, ...]:
        """All spellings, the newest first."""
        return (self.key, *self.aliases)

    def parse(self, raw: Any, spelling: str | None = None) -> Any:
        """Convert ``raw`` to a typed value; a typed value is returned unchanged.

        Args:
            raw: text, or a bool, int, float, function, or list or tuple of names where the kind allows it.
            spelling: the key as the user wrote it, for the message.

        Raises:
            ConfigError: ``raw`` is not a valid value of this option.
        """
        name = spelling or self.key
        if self.kind is Kind.FUNCTION:
            if not callable(raw):
                raise ConfigError(f"{name}={raw!r} is not a function.")
            return raw
        text = text_of(name, raw)
        if self.kind is Kind.BOOL:
            return _parse_bool(name, text)
        if self.kind is Kind.INT:
            return self._in_range(name, _parse_int(name, text))
        if self.kind is Kind.FLOAT:
            return self._in_range(name, _parse_float(name, text))
        if self.kind is Kind.ENUM:
            return self._parse_choice(name, text)
        if self.kind is Kind.LIST:
            return _parse_list(name, text)
        return self._choice_like(text) or text

    def check_supported(self, value: Any, spelling: str | None = None) -> None:
        """Refuse a typed value that hudi_fast does not support.

        Raises:
            UnsupportedFeatureError: naming the key, the value, and the values that are supported.
        """
        if self.supported is None or all(item in self.supported for item in _items(value)):
            return
        shown = f"{spelling or self.key}={_shown(value)}"
        if not self.supported:
            raise UnsupportedFeatureError(
                f"{shown} is not supported, and ignoring it could change the result. "
                + (self.instead or "Remove the option, or use Apache Hudi.")
            )
        raise UnsupportedFeatureError(
            f"{shown} is not supported; supported: {self.supported_text()}. "
            + (self.instead or "Use one of these, or Apache Hudi.")
        )

    def supported_text(self) -> str:
        """The supported values as a user writes them, comma separated; "" if all are supported."""
        return ", ".join(_shown(value) or '""' for value in self.supported or ())

    def _parse_choice(self, name: str, text: str) -> str:
        choice = self._choice_like(text)
        if choice is not None:
            return choice
        valid = self.supported_text() or ", ".join(self.choices)
        raise ConfigError(f"{name}={text!r} is not valid; valid values: {valid}.")

    def _choice_like(self, text: str) -> str | None:
        known = (*self.spellings, *((choice, choice) for choice in self.choices))
        return next((choice for spelling, choice in known if spelling.lower() == text.lower()), None)

    def _in_range(self, name: str, number: Any) -> Any:
        low, high = self.minimum, self.maximum
        below = low is not None and (number < low or (self.exclusive and number == low))
        above = high is not None and (number > high or (self.exclusive and number == high))
        if below or above:
            raise ConfigError(f"{name}={number} is out of range; allowed: {self.range_text()}.")
        return number

    def range_text(self) -> str:
        """The allowed range in words; "" without bounds."""
        low_word, high_word = ("more than", "less than") if self.exclusive else ("at least", "at most")
        parts = [] if self.minimum is None else [f"{low_word} {self.minimum:g}"]
        parts += [] if self.maximum is None else [f"{high_word} {self.maximum:g}"]
        return " and ".join(parts) + (f" {self.unit}" if parts and self.unit else "")


def text_of(name: str, raw: Any) -> str:
    """``raw`` as text in the form of a properties file, stripped of blanks.

    Raises:
        ConfigError: ``raw`` is None or of an unsupported type.
    """
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, str):
        return raw.strip()
    if isinstance(raw, int | float):
        return repr(raw)
    if isinstance(raw, list | tuple) and all(isinstance(item, str) for item in raw):
        return ",".join(raw)
    raise ConfigError(
        f"{name} has a value of type {type(raw).__name__}; expected text, a boolean, a number or a list of names. "
        "Leave the key out to use the default."
    )


def _items(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _parse_bool(name: str, text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ConfigError(f"{name}={text!r} is not a boolean; valid values: true, false.")
    return lowered == "true"


def _parse_int(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{name}={text!r} is not an integer.") from None


def _parse_float(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(f"{name}={text!r} is not a finite number.")
    return number


def _parse_list(name: str, text: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in text.split(",")) if text else ()
    if "" in parts:
        raise ConfigError(f"{name}={text!r} has an empty entry; expected names separated by commas.")
    repeated = sorted({part for part in parts if parts.count(part) > 1})
    if repeated:
        raise ConfigError(f"{name}={text!r} names {', '.join(repeated)} more than once.")
    return parts
