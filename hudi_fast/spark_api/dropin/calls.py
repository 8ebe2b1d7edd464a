"""Record calls on Spark's readers and writers, and translate them.

Records the calls on a Spark reader or writer, and combines them into one :class:`Request`.

Data flow::

    df.write.format("hudi").option("k", 1).mode("append").save(path)
             └────────────── recorded, call by call ──┘    └── the final call ──────┐
                                                     read_calls ─► Request ◄────────┘

PySpark passes these calls to the JVM (or to a plan), which cannot be queried for them; so they are also recorded in
the PySpark object. This module does not import Spark.

Translates recorded Spark calls to hudi_fast's arguments: path, options, mode.

::

    Request + settings of the session ─► table_path, write_options, read_options ─► hudi_fast.write, hudi_fast.read

As in Apache Hudi: keys are case-insensitive; ``partitionBy`` names the partition columns unless an option does;
``hoodie.*`` settings of the session, with or without the prefix ``spark.``, are defaults of its reads (as are options
with the prefix ``spark.``), and do not apply to its writes. Source: ``DataSourceOptions``, ``DefaultSource`` and
``HoodieSparkSqlWriter`` of Hudi 1.2.0, and the behaviour of that release.
"""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any, cast

from hudi_fast.config.option_fields import READ
from hudi_fast.config.option_names import SaveMode, key_generator_of_class, key_generator_of_type
from hudi_fast.config.options import OPTIONS, find_option
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.events import warn
from hudi_fast.storage.hadoop_options import HADOOP_PREFIXES
from hudi_fast.values import dataclass

__all__ = [
    "NOTED",
    "Call",
    "Request",
    "begin_notes",
    "final_calls",
    "is_hudi",
    "note",
    "notes_of",
    "read_calls",
    "read_options",
    "save_mode",
    "stream_options",
    "table_path",
    "write_options",
]

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


_SOURCES = frozenset(
    {
        "hudi",
        "org.apache.hudi",
        *(f"org.apache.hudi.{name}" for name in ("defaultsource", "spark3defaultsource", "spark4defaultsource")),
    }
)
_SPELLINGS = {key.lower(): key for option in OPTIONS for key in option.keys}
_PREFIXES = ("hoodie.", "_hoodie.", "hudi_fast.", *HADOOP_PREFIXES)
_PARTITIONS = "hoodie.datasource.write.partitionpath.field"
_GENERATOR_CLASS = "hoodie.datasource.write.keygenerator.class"
_GENERATOR_TYPE = "hoodie.datasource.write.keygenerator.type"
_METADATA_PREFIX = "hoodie.datasource.write.commitmeta.key.prefix"


def is_hudi(source: str) -> bool:
    """Whether a name means Hudi's data source; short names are case-insensitive in Spark."""
    return source.lower() in _SOURCES


def table_path(request: Request, what: str) -> str:
    """The base path of the table.

    Args:
        request: the recorded calls.
        what: ``save()``, ``load()`` or ``start()``, for messages.

    Raises:
        ConfigError: no path, several paths, a path in both option and call, or a glob pattern.
    """
    option = request.options.get("path")
    given = request.path
    if isinstance(given, (list, tuple)):
        if len(given) != 1:
            raise ConfigError(
                f"{what} of a Hudi table takes one path, got {len(given)}: load each table separately and use "
                "DataFrame.unionByName."
            )
        given = given[0]
    if given is not None and option is not None:
        raise ConfigError(
            f"The option 'path' is set ({option[1]!r}), and {what} is called with a path ({os.fspath(given)!r}); "
            "leave one of the two out."
        )
    path = option[1] if given is None and option is not None else given
    if path is None or not os.fspath(path):
        raise ConfigError(f"'path' must be set: give {what} the base path of the Hudi table, or set the option 'path'.")
    text = os.fspath(path)
    if "*" in text:
        raise ConfigError(
            f"Glob paths are not supported, as in Apache Hudi 1.2: load the base path of the table or the folder of a "
            f"partition, not {text!r}."
        )
    return text


def save_mode(mode: str | None) -> SaveMode:
    """The save mode; Spark's default is ``errorifexists``."""
    text = "errorifexists" if mode is None else mode.lower()
    return "errorifexists" if text in ("error", "default") else cast(SaveMode, text)


def write_options(request: Request) -> dict[str, str]:
    """Options for :func:`hudi_fast.write`.

    Raises:
        ConfigError: bucketing or sorting was requested.

    Warns:
        HudiWarning: an option that is not Hudi's.
    """
    _check_refused(request)
    options = _known(request, keep_prefix=True)
    if request.partition_columns and not any(key in options for key in _same(_PARTITIONS)):
        options[_PARTITIONS] = ",".join(_typed(request.partition_columns, options))
    return options


def read_options(request: Request, session: Mapping[str, str]) -> dict[str, str]:
    """Options for :func:`hudi_fast.read`.

    Args:
        request: the recorded calls.
        session: all settings of the session.

    Raises:
        ConfigError: bucketing or sorting was requested.

    Warns:
        HudiWarning: an option that is not Hudi's.
    """
    _check_refused(request)
    marked = {key: value for key, value in request.options.values() if key.startswith("spark.hoodie.")}
    options = _session_defaults({**session, **marked})
    plain = {lowered: said for lowered, said in request.options.items() if said[0] not in marked}
    given = _known(replace(request, options=plain))
    named = {key for spelling in given for key in _same(spelling)}
    return {**{key: value for key, value in options.items() if key not in named}, **given}


def stream_options(request: Request) -> tuple[dict[str, str], dict[str, str]]:
    """Options of a stream: Hudi's, and Spark's.

    Raises:
        ConfigError: bucketing or sorting was requested.
        UnsupportedFeatureError: a schema was given.
    """
    _check_refused(request)
    if request.schema is not None:
        raise UnsupportedFeatureError(
            "schema() is not supported for a stream from a Hudi table, which has its own schema: leave it out, and "
            "select and cast the columns of the DataFrame that load() returns."
        )
    ours = {_spelled(key): value for key, value in request.options.values() if _is_ours(key)}
    ours.pop("path", None)
    if request.partition_columns and not any(key in ours for key in _same(_PARTITIONS)):
        ours[_PARTITIONS] = ",".join(_typed(request.partition_columns, ours))
    rest = {key: value for key, value in request.options.values() if not _is_ours(key) and key.lower() != "path"}
    return ours, rest


def _known(request: Request, keep_prefix: bool = False) -> dict[str, str]:
    """Hudi's and hudi_fast's options in their canonical spelling; warns about all others."""
    prefix = request.options.get(_METADATA_PREFIX, ("", "_"))[1] if keep_prefix else ""
    options: dict[str, str] = {}
    for key, value in request.options.values():
        if _is_ours(key) or (prefix and key.startswith(prefix)):
            options[_spelled(key)] = value
        elif key.lower() != "path":
            close = difflib.get_close_matches(key.lower(), _SPELLINGS, n=1, cutoff=0.75)
            hint = f" Did you mean {_SPELLINGS[close[0]]}?" if close else ""
            warn(f"The option {key} is not a Hudi option and is ignored.{hint}")
    options.pop("path", None)
    return options


def _is_ours(key: str) -> bool:
    return key.lower() in _SPELLINGS or key.lower().startswith(_PREFIXES)


def _spelled(key: str) -> str:
    return _SPELLINGS.get(key.lower(), key)


def _same(key: str) -> tuple[str, ...]:
    """All spellings of an option."""
    option = find_option(key)
    return (key,) if option is None else tuple(option.keys)


def _typed(columns: tuple[str, ...], options: Mapping[str, str]) -> list[str]:
    """Partition columns as ``name:TYPE`` for the custom key generator; ``SIMPLE`` without a type."""
    name, kind = options.get(_GENERATOR_CLASS), options.get(_GENERATOR_TYPE)
    generator = key_generator_of_class(name) if name else key_generator_of_type(kind) if kind else None
    if generator != "CUSTOM":
        return list(columns)
    return [column if ":" in column else f"{column}:SIMPLE" for column in columns]


def _session_defaults(session: Mapping[str, str]) -> dict[str, str]:
    """Hudi's read options among the session's settings; keys without the prefix ``spark.`` take precedence."""
    found: dict[str, str] = {}
    for marker in ("spark.", ""):
        for key, value in session.items():
            name = key.removeprefix(marker)
            option = find_option(name) if key.startswith(f"{marker}hoodie.") else None
            if option is not None and READ[0] in option.families:
                found[option.key] = value
    return found


def _check_refused(request: Request) -> None:
    if request.refused:
        called = " and ".join(f"{name}()" for name in request.refused)
        raise ConfigError(
            f"A Hudi table takes no {called}. Buckets are hoodie.index.type=BUCKET; the order of rows is "
            "hoodie.bulkinsert.sort.mode or hoodie.clustering.plan.strategy.sort.columns."
        )
