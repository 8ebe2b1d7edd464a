"""Records the calls on a Spark reader or writer, and combines them into one :class:`Request`.

Data flow::

    df.write.format("hudi").option("k", 1).mode("append").save(path)
             └────────────── recorded, call by call ──┘    └── the final call ──────┐
                                                     read_calls ─► Request ◄────────┘

PySpark passes these calls to the JVM (or to a plan), which cannot be queried for them; so they are also recorded in
the PySpark object. This module does not import Spark.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NOTED", "Call", "Request", "begin_notes", "final_calls", "note", "notes_of", "read_calls"]

NOTED = frozenset(
    {
        *("format", "option", "options", "schema", "mode", "partitionBy", "bucketBy", "sortBy", "clusterBy", "using"),
        *("outputMode", "queryName", "trigger", "foreach", "foreachBatch"),
    }
)
"""The methods of readers and writers whose calls are recorded."""

_NOTES = "_hudi_fast_notes"
_REFUSED = frozenset({"bucketBy", "sortBy", "clusterBy"})
_ELSEWHERE = frozenset({"foreach", "foreachBatch"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a reader or writer.

    Attributes:
        name: of the method.
        args: positional arguments.
        kwargs: arguments by name.
    """

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """The combined request of a reader or writer.

    Attributes:
        source: the format; None when none was named.
        elsewhere: whether rows are passed to a user function (``foreach``, ``foreachBatch``) instead of a source.
        path: argument of the final call; None when it has none.
        options: by lower-case key: the key as spelled, and the value as Spark turns it into text. Keys are
            case-insensitive and the last call wins, as in Spark.
        mode: save mode, or output mode of a stream; None when not given.
        partition_columns: of ``partitionBy``, outermost first.
        refused: called methods that do not apply to a Hudi table, in order.
        trigger: arguments of a stream's ``trigger``; None when not given.
        query_name: of a stream; None when not given.
        schema: of a reader's ``schema``: a ``StructType`` or DDL text; None when not given.
        table: the name that ``saveAsTable`` is given; None for other calls.
    """

    source: str | None = None
    elsewhere: bool = False
    path: Any = None
    options: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    mode: str | None = None
    partition_columns: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    trigger: Mapping[str, Any] | None = None
    query_name: str | None = None
    schema: Any = None
    table: str | None = None


def begin_notes(target: Any, built_from: tuple[Any, ...]) -> None:
    """Start recording the calls of a reader or writer.

    Args:
        target: the reader or writer.
        built_from: its constructor arguments: a session, a DataFrame, or a plan and a session.
    """
    setattr(target, _NOTES, (built_from, ()))


def note(target: Any, call: Call) -> None:
    """Record a call of a reader or writer, if its calls are recorded."""
    notes = notes_of(target)
    if notes is not None:
        setattr(target, _NOTES, (notes[0], (*notes[1], call)))


def notes_of(target: Any) -> tuple[tuple[Any, ...], tuple[Call, ...]] | None:
    """Constructor arguments and calls of a reader or writer; None when it was created before recording began."""
    found: tuple[tuple[Any, ...], tuple[Call, ...]] | None = vars(target).get(_NOTES)
    return found


def final_calls(
    method: Callable[..., Any], target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Call]:
    """Split the final call: ``save(p, format="hudi", k=1)`` is ``format("hudi").options(k=1).save(p)``.

    Raises:
        TypeError: the arguments do not match the method's signature.
    """
    bound = inspect.signature(method).bind(target, *args, **kwargs)
    given = list(bound.arguments.items())[1:]
    calls = []
    for name, value in given:
        if name == "options":
            calls.append(Call("options", (), value))
        elif name in NOTED and value is not None:
            calls.append(Call(name, (value,)))
    named = {"path": bound.arguments.get("path"), "table": bound.arguments.get("name")}
    return [*calls, *(Call(name, (value,)) for name, value in named.items())]


def read_calls(calls: Iterable[Call]) -> Request:
    """Combine the calls into a request; the last call of each kind wins."""
    options: dict[str, tuple[str, str]] = {}
    said: dict[str, Any] = {}
    refused: dict[str, None] = {}
    for call in calls:
        first = _first(call)
        if call.name in ("format", "using"):
            said |= {"source": first, "elsewhere": False}
        elif call.name in _ELSEWHERE:
            said["elsewhere"] = True
        elif call.name in ("mode", "outputMode") and first is not None:
            said["mode"] = str(first)
        elif call.name == "partitionBy":
            said["partition_columns"] = _columns(call.args)
        elif call.name == "trigger":
            said["trigger"] = dict(call.kwargs)
        elif call.name == "queryName":
            said["query_name"] = first
        elif call.name == "schema":
            said["schema"] = first
        elif call.name in ("path", "table"):
            said[call.name] = first
        elif call.name in _REFUSED:
            refused[call.name] = None
        for key, value in _options(call):
            if value is not None:
                options[key.lower()] = (key, _text(value))
    return Request(options=options, refused=tuple(refused), **said)


def _first(call: Call) -> Any:
    return next(iter((*call.args, *call.kwargs.values())), None)


def _options(call: Call) -> list[tuple[str, Any]]:
    if call.name == "options":
        return list(call.kwargs.items())
    if call.name == "option":
        named = dict(zip(("key", "value"), call.args, strict=False)) | dict(call.kwargs)
        return [(named["key"], named["value"])]
    return []


def _columns(args: tuple[Any, ...]) -> tuple[str, ...]:
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = tuple(args[0])
    return tuple(str(name) for name in args)


def _text(value: Any) -> str:
    """Convert an option value to text as PySpark does."""
    return str(value).lower() if isinstance(value, bool) else str(value)
