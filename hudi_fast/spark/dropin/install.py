"""The methods of PySpark's readers and writers, wrapped once for a process.

::

    __init__, format, option, mode ...    record the call, then call the original method
    save, load, start ...                 another source, or another session:     original method
                                          Hudi, in a switched-on session:         hudi_fast
                                              not supported, with fallback on:    original method
    sql, table                            refresh the views of saved tables, then call the original method

The wrappers hold no state: calls are recorded in the reader or writer, and the switch is a setting of the session.
Threads and sessions therefore do not interfere.
"""

from __future__ import annotations

import functools
import importlib
import threading
import warnings
from collections.abc import Callable
from typing import Any

from hudi_fast.errors import HudiWarning, UnsupportedFeatureError
from hudi_fast.spark.dropin.actions import Parts, load, load_stream, refuse_table, save, session_of, start_stream
from hudi_fast.spark.dropin.calls import NOTED, Call, Request, begin_notes, final_calls, note, notes_of, read_calls
from hudi_fast.spark.dropin.session import FALLBACK, ORIGINAL, mark_of, source_of
from hudi_fast.spark.dropin.tables import save_table
from hudi_fast.spark.dropin.translate import is_hudi
from hudi_fast.spark.dropin.views import refresh_views

__all__ = ["install"]

Act = Callable[[Parts, Request], Any]

_CLASSIC = ("pyspark.sql.readwriter", "pyspark.sql.streaming.readwriter")
_CONNECT = ("pyspark.sql.connect.readwriter", "pyspark.sql.connect.streaming.readwriter")
_BY_NAME = ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions")
_BATCH: dict[str, dict[str, Act]] = {
    "DataFrameReader": {"load": load},
    "DataFrameWriter": {"save": save, "saveAsTable": save_table, "insertInto": refuse_table},
    "DataFrameWriterV2": dict.fromkeys(_BY_NAME, refuse_table),
}
_STREAM: dict[str, dict[str, Act]] = {
    "DataStreamReader": {"load": load_stream},
    "DataStreamWriter": {"start": start_stream, "toTable": refuse_table},
}
_LOOKS: dict[str, dict[str, tuple[str, ...]]] = {  # Connect's session.table asks its reader
    "pyspark.sql.session": {"SparkSession": ("sql", "table")},
    "pyspark.sql.readwriter": {"DataFrameReader": ("table",)},
    "pyspark.sql.connect.session": {"SparkSession": ("sql",)},
    "pyspark.sql.connect.readwriter": {"DataFrameReader": ("table",)},
}
_LOCK = threading.Lock()


def install(connect: bool) -> None:
    """Wrap the methods once.

    Args:
        connect: wrap the classes of Spark Connect instead of classic PySpark.
    """
    for module_name, acts in zip(_CONNECT if connect else _CLASSIC, (_BATCH, _STREAM), strict=True):
        module = importlib.import_module(module_name)
        with _LOCK:
            for class_name, methods in acts.items():
                _wrap_class(getattr(module, class_name), methods)
    for module_name, classes in _LOOKS.items():
        if module_name.startswith("pyspark.sql.connect") == connect:
            with _LOCK:
                _wrap_looks(importlib.import_module(module_name), classes)


def _wrap_looks(module: Any, classes: dict[str, tuple[str, ...]]) -> None:
    for class_name, names in classes.items():
        kind = getattr(module, class_name)
        for name in names:
            if not hasattr(getattr(kind, name), ORIGINAL):
                setattr(kind, name, _showing(getattr(kind, name)))


def _wrap_class(kind: Any, acts: dict[str, Act]) -> None:
    if hasattr(kind.__init__, ORIGINAL):
        return
    for name in [name for name in vars(kind) if name in NOTED]:
        setattr(kind, name, _noting(name, getattr(kind, name)))
    for name, act in acts.items():
        setattr(kind, name, _acting(getattr(kind, name), act))
    kind.__init__ = _beginning(kind.__init__)  # last: it marks the class as wrapped


def _beginning(original: Any) -> Any:
    @functools.wraps(original)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        begin_notes(self, (*args, *kwargs.values()))

    setattr(wrapper, ORIGINAL, original)
    return wrapper


def _noting(name: str, original: Any) -> Any:
    @functools.wraps(original)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        note(self, Call(name, args, kwargs))
        return result

    return wrapper


def _showing(original: Any) -> Any:
    @functools.wraps(original)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        notes = notes_of(self)  # those of a reader; a session has none
        if notes is not None or hasattr(self, "readStream"):
            refresh_views(self if notes is None else session_of(notes[0]))
        return original(self, *args, **kwargs)

    setattr(wrapper, ORIGINAL, original)
    return wrapper


def _acting(original: Any, act: Act) -> Any:
    @functools.wraps(original)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = _asked_of_us(self, original, args, kwargs)
        if found is None:
            return original(self, *args, **kwargs)
        made_of, request, falls_back = found
        try:
            return act(made_of, request)
        except UnsupportedFeatureError as error:
            # With a note the write is already committed, and only a later step is not supported.
            if not falls_back or getattr(error, "__notes__", None):
                raise
            return _by_spark(error, functools.partial(original, self, *args, **kwargs))

    return wrapper


def _asked_of_us(
    target: Any, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Parts, Request, bool] | None:
    """The request of the call; None when the original method handles it."""
    notes = notes_of(target)
    if notes is None:
        return None
    made_of, calls = notes
    try:
        last = final_calls(method, target, args, kwargs)
    except TypeError:  # invalid arguments: the original method raises the clearest error
        return None
    request = read_calls([*calls, *last])
    if request.elsewhere or (request.source is not None and not is_hudi(str(request.source))):
        return None
    spark = session_of(made_of)
    mark = mark_of(spark)
    if mark is None or not is_hudi(source_of(spark, request.source)):
        return None
    return made_of, request, mark == FALLBACK


def _by_spark(error: UnsupportedFeatureError, call: Callable[[], Any]) -> Any:
    """Run the call with Apache Hudi from Spark's class path; without it re-raise the first error."""
    try:
        result = call()
    except Exception as other:
        if "DATA_SOURCE_NOT_FOUND" not in str(other) and "Failed to find data source" not in str(other):
            warnings.warn(_left(error), HudiWarning, stacklevel=4)
            raise
        error.add_note("There is no Apache Hudi on the class path of the session to fall back to.")
        raise error from None
    warnings.warn(_left(error), HudiWarning, stacklevel=4)
    return result


def _left(error: UnsupportedFeatureError) -> str:
    return f"Falling back to Apache Hudi's own data source, because hudi_fast does not support this call: {error}"
