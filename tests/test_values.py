"""Classes of :mod:`hudi_fast.values` behave as those of :mod:`dataclasses`, for all arguments and fields."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast import values

KINDS = {
    "plain": {},
    "default": {"default": 7},
    "factory": {"default_factory": list},
    "keyword": {"kw_only": True},
    "hidden": {"default": 1, "repr": False},
    "unhashed": {"default": 4, "hash": False},
    "ignored": {"default": 2, "compare": False},
    "fixed": {"default": 3, "init": False},
    "made": {"default_factory": list, "init": False},
}
OPTIONS = ("eq", "frozen", "kw_only", "repr", "slots")

Decorator = Callable[..., Any]


OWN = {
    "__eq__": lambda self, other: True,
    "__hash__": lambda self: 42,
    "__repr__": lambda self: "own",
    "__post_init__": lambda self: object.__setattr__(self, dataclasses.fields(self)[0].name, 99),
}
"""Methods that a class may define itself; the last one is seen in the first field."""


def made(
    decorator: Decorator, fields: dict[str, str], options: dict[str, bool], own: set[str], base: type = object
) -> Any:
    body: dict[str, Any] = {name: dataclasses.field(**KINDS[kind]) for name, kind in fields.items() if KINDS[kind]}
    annotations: dict[str, Any] = {"limit": ClassVar[int], **dict.fromkeys(fields, "object")}
    body |= {"__annotations__": annotations, "__doc__": "Drawn."}
    return decorator(**options)(type("Drawn", (base,), body | {name: OWN[name] for name in own}))


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (AttributeError, SyntaxError, TypeError) as error:
        return type(error), str(error)


def behaviour(cls: Any, arguments: tuple[int, ...], keywords: dict[str, int]) -> dict[str, Any]:
    """Results that must not depend on who made a class."""
    one = outcome(lambda: cls(*arguments, **keywords))
    seen = {
        "signature": str(inspect.signature(cls)),
        "match": cls.__match_args__,
        "doc": cls.__doc__,
        "names": [field.name for field in dataclasses.fields(cls)],
        "hashable": cls.__hash__ is not None,
    }
    if not isinstance(one, cls):
        return seen | {"error": one[0]}
    other = cls(*arguments, **keywords)
    name = seen["names"][0]
    return seen | {
        "text": repr(one).partition(" object at ")[0],
        "equal": (one == other, one == object(), one != other),
        "hash": outcome(lambda: hash(one) == hash(other)),
        "number": outcome(lambda: hash(one)) if cls.__hash__ not in (object.__hash__, None) else None,
        "dict": dataclasses.asdict(one),
        "replaced": outcome(lambda: dataclasses.asdict(dataclasses.replace(one))),
        "copied": dataclasses.asdict(copy.deepcopy(one)) == dataclasses.asdict(copy.copy(one)),
        "set": outcome(lambda: setattr(one, name, 9)),
        "deleted": outcome(lambda: delattr(one, name)),
        "unknown": unknown_attribute(one),
    }


def unknown_attribute(one: Any) -> Any:
    """What setting an attribute without a field does. Frozen classes with slots of Python fail in their own code."""
    found = outcome(lambda: setattr(one, "unknown", 9))
    is_ours = getattr(type(one).__setattr__, "__module__", "") == values.__name__
    if not is_ours and isinstance(found, tuple) and found[1].startswith("super(type, obj)"):
        return dataclasses.FrozenInstanceError, "cannot assign to field 'unknown'"
    return found


drawn_fields = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(sorted(KINDS)), min_size=1)
drawn_options = st.fixed_dictionaries({}, optional={name: st.booleans() for name in OPTIONS})


@settings(max_examples=300, deadline=None)
@given(drawn_fields, drawn_options, st.sets(st.sampled_from(sorted(OWN))), st.data())
def test_a_class_behaves_as_one_of_the_standard_library(
    fields: dict[str, str], options: dict[str, bool], own: set[str], data: st.DataObject
) -> None:
    theirs = outcome(lambda: made(dataclasses.dataclass, fields, options, own))
    if not isinstance(theirs, type):  # a field without a default behind one with a default
        with pytest.raises((TypeError, SyntaxError)):
            made(values.dataclass, fields, options, own)
        return
    ours = made(values.dataclass, fields, options, own)
    keywords = {name: data.draw(st.integers(0, 3)) for name in fields if data.draw(st.booleans())}
    arguments = tuple(data.draw(st.lists(st.integers(0, 3), max_size=2)))
    assert behaviour(ours, arguments, keywords) == behaviour(theirs, arguments, keywords)


@settings(max_examples=200, deadline=None)
@given(drawn_fields, drawn_fields, drawn_options, drawn_options, st.booleans(), st.integers(0, 3))
def test_a_subclass_behaves_as_one_of_the_standard_library(
    fields: dict[str, str],
    more: dict[str, str],
    options: dict[str, bool],
    other_options: dict[str, bool],
    of_a_user: bool,
    value: int,
) -> None:
    other_options = {**other_options, "slots": options.get("slots", False)}  # otherwise Python loses some defaults

    def of(base: Decorator, decorator: Decorator) -> Any:
        return outcome(lambda: made(decorator, more, other_options, set(), made(base, fields, options, set())))

    theirs = of(dataclasses.dataclass, dataclasses.dataclass)
    ours = of(values.dataclass, dataclasses.dataclass if of_a_user else values.dataclass)
    if not isinstance(theirs, type):
        assert ours[0] in (theirs[0], SyntaxError)
        return
    given_names = {name: value for name, kind in {**fields, **more}.items() if "init" not in KINDS[kind]}
    assert behaviour(ours, (), given_names) == behaviour(theirs, (), given_names)


def test_a_class_without_a_text_gets_none() -> None:
    @values.dataclass(frozen=True)
    class Bare:
        a: int

    assert Bare.__doc__ is None
    assert Bare(1) == Bare(1)
    assert repr(Bare(2)).endswith("Bare(a=2)")


def test_an_instance_that_contains_itself_can_be_shown() -> None:
    @values.dataclass()
    class Node:
        next: Any = None

    node = Node()
    node.next = node
    assert repr(node).endswith("Node(next=...)")


def test_the_library_makes_its_dataclasses_here() -> None:
    sources = [path for path in Path(values.__file__).parent.rglob("*.py") if path.name != "values.py"]
    quick = re.compile(r"^from dataclasses import .*\bdataclass\b|dataclasses\.dataclass\(", re.MULTILINE)
    assert [path for path in sources if quick.search(path.read_text())] == []
