"""Classes of :mod:`hudi_fast.values` behave as those of :mod:`dataclasses`, for all arguments and fields.

Its cached properties hold no lock.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast import values
from tests.support.forks import started, wait_for

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


class Slow:
    """A property that waits for an event."""

    def __init__(self, begun: threading.Event, may_end: threading.Event) -> None:
        self.begun, self.may_end, self.computed = begun, may_end, 0

    @values.cached_property
    def value(self) -> int:
        """A value."""
        self.computed += 1
        self.begun.set()
        assert self.may_end.wait(30)
        return 7


def test_a_cached_property_is_computed_once() -> None:
    ready = threading.Event()
    ready.set()
    slow = Slow(threading.Event(), ready)
    assert (slow.value, slow.value, slow.computed) == (7, 7, 1)
    assert Slow.value.__doc__ == "A value."
    del slow.value
    assert (slow.value, slow.computed) == (7, 2)


def test_a_child_that_is_forked_while_a_property_is_computed_can_compute_it() -> None:
    ready = threading.Event()
    ready.set()
    slow = Slow(threading.Event(), threading.Event())
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    try:
        assert slow.begun.wait(30)
        child = started(lambda: Slow(threading.Event(), ready).value)
        assert wait_for(child, 30) == 0
    finally:
        slow.may_end.set()
        thread.join()


def test_no_class_has_cached_properties_with_a_lock() -> None:
    """Those of :mod:`functools` have one in Python 3.11."""
    package = Path(values.__file__).parent
    using = [
        str(file.relative_to(package))
        for file in (*package.rglob("*.py"), *package.with_name("kernels").glob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "functools"
        if any(one.name == "cached_property" for one in node.names)
    ]
    assert using == ["values.py"]
