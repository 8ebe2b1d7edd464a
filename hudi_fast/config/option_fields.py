"""Description of an option, and dataclass fields that declare it.

Dataclass fields that declare options, and the construction of such dataclasses.

::

    codec: str = option("hoodie.parquet.compression.codec", Kind.ENUM, "zstd", "Codec of ...", choices=...)

The field has the default of its option. The option parses and range-checks the value, whether the value is given in a
dictionary of options or to the constructor.

Description of one option: key, spellings, type, default, range and supported values.

Data flow::

    raw value (str | bool | int | float | list) --Option.parse--> typed value --Option.check_supported--> used

:meth:`Option.parse` raises :class:`ConfigError` for an invalid value; :meth:`Option.check_supported` raises
:class:`UnsupportedFeatureError` for a valid value that hudi_fast does not support. Options of the other family (a read
option in a dictionary for a write) are neither parsed nor checked.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import Any, Self

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.values import dataclass

__all__ = [
    "BOTH",
    "READ",
    "WRITE",
    "Kind",
    "Option",
    "OptionValues",
    "bound",
    "differing_keys",
    "differing_repr",
    "given_fields",
    "normalise_fields",
    "option",
    "option_of_field",
    "options_of",
    "same_option",
    "text_of",
]

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


_EXPLICIT = "explicit"
_SHARED = "shared"


# ---- declaration


def option(key: str, kind: Kind, default: Any, doc: str, *, secret: bool = False, **more: Any) -> Any:
    """A dataclass field that declares an option; typed ``Any`` to accept every annotation.

    Args:
        key: spelling in the newest Hudi release.
        kind: type of the value.
        default: typed value if the key is absent; None if absence has a meaning of its own.
        doc: effect of the option, as shown in docs/options.md.
        secret: whether the ``repr`` hides the value.
        more: further attributes of :class:`Option`.
    """
    return bound(Option(key, kind, default, doc, **more), secret)


def bound(declared: Option, secret: bool = False) -> Any:
    """A dataclass field for an option that is declared elsewhere in its module."""
    return dataclasses.field(default=declared.default, repr=not secret, metadata={"option": declared})


def same_option(cls: type[Any], name: str) -> Any:
    """A dataclass field for an option that a field of another class declares."""
    found = {field.name: field for field in dataclasses.fields(cls)}[name]
    return dataclasses.field(default=found.default, metadata={**found.metadata, _SHARED: True})


def option_of_field(field: dataclasses.Field[Any]) -> Option | None:
    """The option that a field declares, or None."""
    found = field.metadata.get("option")
    return found if isinstance(found, Option) else None


def options_of(cls: type[Any]) -> tuple[Option, ...]:
    """The options that a class declares, in the order of its fields; without options of other classes."""
    fields = [field for field in dataclasses.fields(cls) if _SHARED not in field.metadata]
    return tuple(filter(None, map(option_of_field, fields)))


# ---- values


_known: dict[type[Any], dict[Option, str]] = {}


def _bound(cls: type[Any]) -> dict[Option, str]:
    """The options that fields of a class declare, and the names of the fields."""
    found = _known.get(cls)
    if found is None:
        named = ((option_of_field(field), field.name) for field in dataclasses.fields(cls))
        found = _known[cls] = {declared: name for declared, name in named if declared is not None}
    return found


def given_fields(cls: type[Any], values: Mapping[Option, Any]) -> dict[str, Any]:
    """Resolved values by field name, for the options that fields of ``cls`` declare."""
    named = _bound(cls)
    return {named[declared]: value for declared, value in values.items() if declared in named}


def normalise_fields(instance: Any) -> frozenset[str]:
    """Parse and check the fields of a frozen dataclass under construction.

    Returns:
        Keys of the options whose value differs from the default.

    Raises:
        ConfigError: an invalid value.
        UnsupportedFeatureError: an unsupported value.
    """
    keys = set()
    for declared, name in _bound(type(instance)).items():
        value = getattr(instance, name)
        if value != declared.default:
            parsed = declared.parse(value)
            declared.check_supported(parsed)
            object.__setattr__(instance, name, parsed)
            if parsed != declared.default:
                keys.add(declared.key)
    return frozenset(keys)


def differing_keys(instance: Any) -> frozenset[str]:
    """Keys of the options whose value differs from the default."""
    return frozenset(
        declared.key for declared, name in _bound(type(instance)).items() if getattr(instance, name) != declared.default
    )


def differing_repr(instance: Any) -> str:
    """``Name(field=value, ...)`` with only the fields that differ from their defaults."""
    shown = []
    for field in dataclasses.fields(instance):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        value = getattr(instance, field.name)
        if field.repr and value != default:
            shown.append(f"{field.name}={value!r}")
    return f"{type(instance).__name__}({', '.join(shown)})"


class OptionValues:
    """Base of frozen dataclasses whose fields declare options.

    A field ``explicit``, if present, holds the newest keys of the given options.
    """

    __slots__ = ()

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Resolve a dictionary of write options; options of other dataclasses are ignored.

        Raises:
            ConfigError: a key or value is invalid, or options contradict each other.
            UnsupportedFeatureError: an option requests an unsupported feature.

        Warns:
            HudiWarning: an unknown ``hoodie.`` key.
        """
        from hudi_fast.config.options import written_options  # it imports all classes of options

        return cls.of(written_options(options))

    @classmethod
    def of(cls, values: Mapping[Option, Any]) -> Self:
        """Build from resolved options; options of other dataclasses are ignored.

        Raises:
            ConfigError: options contradict each other.
        """
        given: dict[str, Any] = given_fields(cls, values)
        if hasattr(cls, _EXPLICIT):
            given[_EXPLICIT] = frozenset(declared.key for declared in values)
        return cls(**given)

    def __post_init__(self) -> None:
        normalise_fields(self)

    def __repr__(self) -> str:
        return differing_repr(self)
