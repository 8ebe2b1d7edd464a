"""Pure functions of the product whose answers are kept: the same bytes are decoded once, not in every history.

::

    a file is read (a step of the world) ─► its bytes ─► decoded before? ─► the answer of then
                                                                     └───► the product decodes them, and it is kept

A function is here if its answer follows from its arguments alone. No step of the world is left out: files are listed
and read as often as ever. :func:`checked` computes each answer again and compares it with the kept one.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from hudi_fast.config.properties_file import parse_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.formats.avro.rows import AvroDecoder
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.formats.hfile.reader import HFileReader
from hudi_fast.metadata_table.fold import Layer, fold
from hudi_fast.metadata_table.read import _hfile_layers
from hudi_fast.metadata_table.records import decode_records
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.writing.settings import Settings

__all__ = ["checked", "replacements"]

_MOST = 50_000
"""Answers; then all are forgotten."""

_answers: dict[Any, Any] = {}
_is_checked = False


class _Pure(NamedTuple):
    """A pure function.

    Attributes:
        function: of a module, or bound to a class.
        key: what its answer follows from, made of its arguments; None where its answer is not kept.
        given: what a caller gets of an answer that is kept.
    """

    function: Callable[..., Any]
    key: Callable[..., Any]
    given: Callable[[Any], Any] = lambda answer: answer


def _all(*given: Any, **named: Any) -> Any:
    return given, tuple(named.items())


def _of_layers(
    _table: Any, source: Any, path: str, query: Any, _keeps: bool, block: Any = None, offset: int = 0, limit: int = 0
) -> Any:
    if query is not HFileReader.scan:
        return None
    content = source if isinstance(source, pa.Buffer) else source.read_at(source.size(), 0)
    schema = None if block is None else (tuple(block.headers.items()), block.content_length)
    return bytes(content), path, schema, offset, limit


def _of_records(kind: Any, keys: pa.Array, values: pa.Array, schema: str, where: str) -> Any:
    return kind, tuple(keys.to_pylist()), tuple(values.to_pylist()), schema, where


def _of_fold(kind: Any, layers: Any) -> Any:
    return kind, tuple(_content(one) for one in layers)


def _content(layer: Layer) -> Any:
    values = None if layer.values is None else tuple(layer.values.to_pylist())
    return tuple(layer.keys.to_pylist()), values, layer.schema, layer.where


def _of_options(options: Any, merger: Any = None) -> Any:
    return tuple(sorted((options or {}).items())), merger


def _of_properties(properties: Any, where: str) -> Any:
    return tuple(properties.items()), where


_PURE = (
    _Pure(parse_properties, _all, dict),
    _Pure(decode_commit_metadata, _all),
    _Pure(avro_to_arrow, lambda schema, where: (schema, where) if isinstance(schema, str) else None),
    _Pure(decode_records, _of_records),
    _Pure(fold, _of_fold),
    _Pure(_hfile_layers, _of_layers, iter),
    _Pure(AvroDecoder.compile, _all),
    _Pure(TableConfig.from_properties, _of_properties),
    _Pure(Settings.from_options, _of_options),
)


def _remembering(pure: _Pure) -> Callable[..., Any]:
    function, key_of, given, name = pure.function, pure.key, pure.given, pure.function.__qualname__

    def answered(*args: Any, **kwargs: Any) -> Any:
        key = key_of(*args, **kwargs)
        if key is None:
            return function(*args, **kwargs)
        key = name, key
        if key not in _answers or _is_checked:
            answer = function(*args, **kwargs)
            answer = list(answer) if isinstance(answer, Iterator) else answer
            if key in _answers and _shown(_answers[key]) != _shown(answer):
                raise AssertionError(f"{name} is not pure: {_shown(answer)}, before {_shown(_answers[key])}")
            if len(_answers) >= _MOST:
                _answers.clear()
            _answers[key] = answer
        return given(_answers[key])

    return answered


def _shown(answer: Any) -> str:
    """Text that differs where answers do."""
    if isinstance(answer, list):
        return repr([_shown(one) for one in answer])
    if isinstance(answer, Layer):
        return repr(_content(answer))
    return repr(answer.to_pydict() if isinstance(answer, pa.Table) else answer)


def replacements() -> list[tuple[Any, str, Any]]:
    """Modules and classes, names in them, and the functions that keep answers."""
    return _found(len(sys.modules))


@lru_cache(1)
def _found(_modules: int) -> list[tuple[Any, str, Any]]:
    made = {one.function.__name__: (one.function, _remembering(one)) for one in _PURE}
    found = [
        (function.__self__, name, each) for name, (function, each) in made.items() if hasattr(function, "__self__")
    ]
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("hudi_fast."):
            names = vars(module)
            found += [(module, name, each) for name, (function, each) in made.items() if names.get(name) is function]
    return found


@contextlib.contextmanager
def checked() -> Iterator[None]:
    """Compute each answer again, and compare it with the kept one.

    Raises:
        AssertionError: a function answers differently, or somebody has changed its answer.
    """
    global _is_checked
    _is_checked = True
    try:
        yield
    finally:
        _is_checked = False
