"""Dataclasses that are made quickly, and cached properties without a lock.

::

    @dataclass(frozen=True, slots=True)     the arguments, and the classes, of :func:`dataclasses.dataclass`
    class Slice: ...

Python compiles the text of six methods for each dataclass, about a millisecond. A first write makes 380 of them, which
took a quarter of its time. Here only ``__init__`` is compiled; the other methods are closures over the names of the
fields, which compare and hash no slower. To a type checker this is :func:`dataclasses.dataclass` itself.

``functools.cached_property`` of Python 3.11 holds one lock for all instances of a class while it computes a value. A
process that forks meanwhile gives its child a lock that nobody releases: the child waits for ever. Python 3.12 has no
such lock, and neither has :class:`cached_property` here.
"""

from __future__ import annotations

import dataclasses
import operator
import reprlib
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property", "dataclass"]


def _dataclass(
    cls: Any = None,
    /,
    *,
    eq: bool = True,
    frozen: bool = False,
    kw_only: bool = False,
    repr: bool = True,
    slots: bool = False,
) -> Any:
    """As :func:`dataclasses.dataclass`, for fields that are no ``InitVar``.

    Args:
        cls: the class; None to get a decorator.
        eq: whether instances with equal fields are equal; if they are frozen, they can be hashed, too.
        frozen: whether assigning to a field raises ``FrozenInstanceError``.
        kw_only: whether all fields are keyword-only.
        repr: whether instances show their fields.
        slots: whether instances have slots in place of a ``__dict__``.
    """

    def make(cls: Any) -> Any:
        doc, cls.__doc__ = cls.__doc__, "-"  # without a text Python makes one of the signature
        checked = frozen and any(map(dataclasses.is_dataclass, cls.__bases__))  # whether its bases are frozen, too
        made = dataclasses.dataclass(
            cls, init=False, repr=False, eq=False, frozen=checked, kw_only=kw_only, slots=slots
        )
        made.__dataclass_params__.frozen = frozen
        made.__doc__, fields = doc, dataclasses.fields(made)
        methods: dict[str, Any] = {"__init__": _init(made, fields, frozen)}
        if repr:
            methods["__repr__"] = _repr([one.name for one in fields if one.repr])
        if eq:
            methods |= _comparisons(fields, frozen)
        for name, method in methods.items():
            if name not in vars(made) or (name == "__hash__" and made.__hash__ is None):
                _set(made, name, method)
        if frozen:
            _freeze(made, [one.name for one in fields], slots)
        return made

    return make if cls is None else make(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


class _Factory:
    """The default of an argument whose field has a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _set(cls: type, name: str, method: Callable[..., Any] | None) -> None:
    if method is not None:
        method.__qualname__ = f"{cls.__qualname__}.{name}"
    setattr(cls, name, method)


def _init(cls: type, fields: tuple[Field[Any], ...], frozen: bool) -> Callable[..., None]:
    names: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": _FACTORY}
    positional, keywords, lines = ["self"], ["*"], list[str]()
    for one in fields:
        name, value = one.name, one.name
        argument = name
        if one.default_factory is not MISSING:
            names[f"_new_{name}"], argument = one.default_factory, f"{name}=_FACTORY"
            value = f"_new_{name}() if {name} is _FACTORY else {name}" if one.init else f"_new_{name}()"
        elif one.default is not MISSING:
            names[f"_default_{name}"], argument = one.default, f"{name}=_default_{name}"
            value = value if one.init else f"_default_{name}"
        elif not one.init:
            continue
        if one.init:
            (keywords if one.kw_only else positional).append(argument)
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    arguments = ", ".join(positional + (keywords if len(keywords) > 1 else []))
    exec(f"def __init__({arguments}):\n " + ("\n ".join(lines) or "pass"), names)
    made: Callable[..., None] = names["__init__"]
    made.__module__ = cls.__module__
    made.__annotations__ = {one.name: one.type for one in fields if one.init} | {"return": None}
    return made


def _repr(names: list[str]) -> Callable[[Any], str]:
    @reprlib.recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _comparisons(fields: tuple[Field[Any], ...], frozen: bool) -> dict[str, Any]:
    compared = _values([one.name for one in fields if one.compare])
    hashed = _values([one.name for one in fields if (one.compare if one.hash is None else one.hash)])

    def __eq__(self: Any, other: Any) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(hashed(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _values(names: list[str]) -> Callable[[Any], Any]:
    """A function that returns the values of attributes as a tuple."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _freeze(cls: Any, names: list[str], slots: bool) -> None:
    frozen = frozenset(names)

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in frozen:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in frozen:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    _set(cls, "__setattr__", __setattr__)
    _set(cls, "__delattr__", __delattr__)
    if slots and "__getstate__" not in vars(cls):  # otherwise pickle assigns to fields
        cls.__getstate__, cls.__setstate__ = _state_of, _set_state


def _state_of(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


class _CachedProperty:
    """A property whose value is computed once for an instance, and kept in its ``__dict__``.

    Threads that need it at the same time may compute it several times; one of the values is kept.

    Args:
        function: computes the value.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._function(instance)
        return value


if TYPE_CHECKING:
    from functools import cached_property
else:
    cached_property = _CachedProperty
