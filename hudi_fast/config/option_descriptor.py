"""One option as a value: its key, spellings, type, default, range and what happens when it is given.

Data flow::

    raw value (str | bool | int | float | list) --Option.parse--> typed value --Option.check_supported--> used

Parsing decides whether a value means anything (:class:`ConfigError`); support decides whether hudi_fast does what it
means (:class:`UnsupportedFeatureError`). The two are apart because an option of the other family (a read option in a
dictionary for a write) is neither parsed nor refused.
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


class Kind(enum.Enum):
    """What a value is, and so how its text is read."""

    BOOL = "boolean"
    INT = "integer"
    FLOAT = "number"
    TEXT = "text"
    ENUM = "one of"
    LIST = "comma list"
    FUNCTION = "function"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of Apache Hudi (``hoodie.``) or of hudi_fast itself (``hudi_fast.``).

    Attributes:
        key: the spelling of the newest Hudi release.
        kind: how values are read.
        default: typed value when the key is absent; None where absence itself means something.
        doc: what it does, one sentence.
        aliases: other spellings that Hudi accepts or accepted.
        unit: unit of a number: bytes, ms, rows ...
        choices: every value Hudi knows, in the spelling that hudi_fast uses; for :attr:`Kind.ENUM`. A text that
            equals one but for case becomes it.
        supported: the values (for a list: its entries) that hudi_fast does; None = all, empty = none: giving the key
            is refused.
        minimum: smallest number allowed.
        maximum: largest number allowed.
        exclusive: whether the bounds themselves are outside.
        families: ``read``, ``write`` or both: which calls look at it.
        honoured: False when the value has no effect, and none is needed for the right result.
    """

    key: str
    kind: Kind
    default: Any
    doc: str
    aliases: tuple[str, ...] = ()
    unit: str = ""
    choices: tuple[str, ...] = ()
    supported: tuple[Any, ...] | None = None
    minimum: float | None = None
    maximum: float | None = None
    exclusive: bool = False
    families: tuple[str, ...] = WRITE
    honoured: bool = True

    @property
    def keys(self) -> tuple[str, ...]:
        """All spellings, the newest first."""
        return (self.key, *self.aliases)

    def parse(self, raw: Any, spelling: str | None = None) -> Any:
        """The typed value of ``raw``; a value that is typed already comes back as it is.

        Args:
            raw: text, or a bool, int, float, function, or list or tuple of names where the kind allows it.
            spelling: the key as the user wrote it, for the message.

        Raises:
            ConfigError: ``raw`` is no value of this option.
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
        """Refuse a typed value that hudi_fast does not do.

        Raises:
            UnsupportedFeatureError: naming the key, the value, and the values that are supported.
        """
        if self.supported is None or all(item in self.supported for item in _items(value)):
            return
        shown = f"{spelling or self.key}={_shown(value)}"
        if not self.supported:
            raise UnsupportedFeatureError(
                f"{shown} is not supported: hudi_fast does not do this, and leaving it out could change the result. "
                "Remove the option, or use Apache Hudi for it."
            )
        raise UnsupportedFeatureError(
            f"{shown} is not supported; supported: {self.supported_text()}. Use one of these, or Apache Hudi."
        )

    def supported_text(self) -> str:
        """The supported values as a user would write them, comma separated; "" when all are."""
        return ", ".join(_shown(value) or '""' for value in self.supported or ())

    def _parse_choice(self, name: str, text: str) -> str:
        choice = self._choice_like(text)
        if choice is not None:
            return choice
        valid = self.supported_text() or ", ".join(self.choices)
        raise ConfigError(f"{name}={text!r} is not valid; valid values: {valid}.")

    def _choice_like(self, text: str) -> str | None:
        return next((choice for choice in self.choices if choice.lower() == text.lower()), None)

    def _in_range(self, name: str, number: Any) -> Any:
        low, high = self.minimum, self.maximum
        below = low is not None and (number < low or (self.exclusive and number == low))
        above = high is not None and (number > high or (self.exclusive and number == high))
        if below or above:
            raise ConfigError(f"{name}={number} is out of range; allowed: {self.range_text()}.")
        return number

    def range_text(self) -> str:
        """The allowed numbers in words; "" when there are no bounds."""
        low_word, high_word = ("more than", "less than") if self.exclusive else ("at least", "at most")
        parts = [] if self.minimum is None else [f"{low_word} {self.minimum:g}"]
        parts += [] if self.maximum is None else [f"{high_word} {self.maximum:g}"]
        return " and ".join(parts) + (f" {self.unit}" if parts and self.unit else "")


def text_of(name: str, raw: Any) -> str:
    """``raw`` as it would stand in a properties file, without blanks around it.

    Raises:
        ConfigError: ``raw`` is None or of a type that no option has.
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
        "Leave the key out to have the default."
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
