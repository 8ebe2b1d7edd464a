"""Check that the fields of a decoded value have the types that its class declares.

Bodies of instants are untrusted: JSON may hold any value anywhere, and an Avro file contains its own schema. After one
check at the end of decoding, later code need not check types.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

from hudi_fast.values import dataclass

__all__ = ["checked"]

_Value = TypeVar("_Value")
_Check = Callable[[Any], bool]

_SCALARS = (str, int, bool, float, types.NoneType)
_MAX_KNOWN = 1000


def checked(value: _Value) -> _Value:
    """The value itself: a dataclass, or a tuple of them.

    Raises:
        TypeError: a field has a value of another type than declared; names the field.
    """
    for one in value if isinstance(value, tuple) else (value,):
        kind: Any = type(one)
        _plan(kind).check(one)
    return value


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to check one class.

    Attributes:
        scalars: names and checks of the fields without parts.
        values: gets the values of these fields.
        known: combinations of their types that have passed; most values of a class share one.
        others: names and checks of the other fields.
    """

    scalars: tuple[tuple[str, _Check], ...]
    values: Callable[[Any], tuple[Any, ...]]
    known: set[tuple[type, ...]]
    others: tuple[tuple[str, _Check], ...]

    def check(self, value: Any) -> None:
        kinds = tuple(map(type, self.values(value)))
        if kinds not in self.known:
            _check_all(value, self.scalars)
            if len(self.known) < _MAX_KNOWN:
                self.known.add(kinds)
        _check_all(value, self.others)


def _check_all(value: Any, checks: tuple[tuple[str, _Check], ...]) -> None:
    for name, check in checks:
        if not check(getattr(value, name)):
            raise TypeError(f"{type(value).__name__}.{name} cannot be {str(getattr(value, name))[:60]!r}")


@cache
def _plan(kind: type) -> _Plan:
    hints = typing.get_type_hints(kind)
    scalars: list[tuple[str, _Check]] = []
    others: list[tuple[str, _Check]] = []
    for field in dataclasses.fields(kind):
        target = scalars if _is_scalar(hints[field.name]) else others
        target.append((field.name, _check_of(hints[field.name])))
    names = [name for name, _ in scalars]
    get = attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)
    return _Plan(tuple(scalars), get, set(), tuple(others))


def _is_scalar(hint: Any) -> bool:
    parts = typing.get_args(hint) if _is_union(hint) else (hint,)
    return all(part in _SCALARS for part in parts)


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _check_of(hint: Any) -> _Check:
    """Whether a value has the declared type; types that bodies do not store are not checked."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SCALARS:
        return lambda value: type(value) is hint
    if _is_union(hint):
        checks = [_check_of(part) for part in parts]
        return lambda value: any(check(value) for check in checks)
    if origin is tuple and parts[-1] is not Ellipsis:
        each = [_check_of(part) for part in parts]
        return lambda value: isinstance(value, tuple) and len(value) == len(each) and all(map(_apply, each, value))
    if origin in (tuple, list):
        item = _check_of(parts[0])
        return lambda value: isinstance(value, origin) and all(map(item, value))
    if origin in (dict, Mapping):
        key, item = map(_check_of, parts)
        return lambda value: isinstance(value, dict) and all(map(key, value)) and all(map(item, value.values()))
    if dataclasses.is_dataclass(hint):
        kind: Any = hint
        return lambda value: isinstance(value, kind) and checked(value) is value
    return lambda value: True


def _apply(check: _Check, value: Any) -> bool:
    return check(value)
