"""The trees of ``pyarrow.compute`` expressions, by way of Arrow's pickled form.

::

    expression ─► pickled form ─► words: calls, fields, places of literals ─► Tree ─► words ─► ... ─► expression

The text of an expression is ambiguous. Its pickled form is not: it is a record batch whose metadata lists calls, fields
and positions of literals in order, and whose columns hold the literals and the options of functions. The format is
internal to Arrow, so :func:`tree_of` returns None if anything in it is unknown.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Call", "Field", "Literal", "Node", "Tree", "expression_of", "tree_of"]

Word: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field inside structs: the names from the outside in."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal, and the index of its column in the batch."""

    value: pa.Scalar
    place: int


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of Arrow's functions.

    Attributes:
        options: the function's options; None without options.
        place: the index of the options' column in the batch.
    """

    function: str
    arguments: tuple[Node, ...]
    options: pa.StructScalar | None = None
    place: int = -1


Node: TypeAlias = Call | Field | Literal


@dataclass(frozen=True, slots=True)
class Tree:
    """An expression: its root, and the literals and options of its nodes."""

    root: Node
    batch: pa.RecordBatch

    def with_literal(self, value: pa.Scalar) -> tuple[Tree, Literal]:
        """The tree with one more literal, which nodes may use."""
        arrays = [*self.batch.columns, pa.array([value.as_py()], value.type)]
        names = [*self.batch.schema.names, str(len(arrays))]
        return Tree(self.root, pa.RecordBatch.from_arrays(arrays, names)), Literal(value, len(arrays) - 1)


class _Unknown(Exception):
    """The pickled form is not supported."""


def tree_of(expression: pc.Expression) -> Tree | None:
    """The tree of an expression; None if it cannot be read."""
    try:
        stream = expression.__reduce__()[1][0]
        batch = pa.ipc.open_file(stream).get_batch(0)
        return Tree(_root(_metadata_pairs(batch.schema), batch), batch)
    except (_Unknown, pa.ArrowException, IndexError, KeyError, ValueError, TypeError, UnicodeDecodeError):
        return None


def expression_of(tree: Tree) -> pc.Expression:
    """The expression of a tree."""
    metadata = pa.KeyValueMetadata(list(_words(tree.root)))
    batch = tree.batch.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pc.Expression._deserialize(sink.getvalue())


def _root(words: Sequence[Word], batch: pa.RecordBatch) -> Node:
    """The node of all words. Not recursive: a chain of operators is as deep as it is long."""
    open_calls: list[tuple[str, list[Node], int]] = [("", [], -1)]
    at = 0
    while at < len(words):
        tag, text = words[at]
        at += 1
        if tag == "call":
            open_calls.append((text, [], -1))
        elif tag == "options":
            function, arguments, _ = open_calls.pop()
            open_calls.append((function, arguments, int(text)))
        elif tag == "end":
            function, arguments, place = open_calls.pop()
            if function != text or not open_calls:
                raise _Unknown
            options = batch.column(place)[0] if place >= 0 else None
            open_calls[-1][1].append(Call(function, tuple(arguments), options, place))
        elif tag == "field_ref":
            open_calls[-1][1].append(Field((text,)))
        elif tag == "nested_field_ref":
            inside = words[at : at + int(text)]
            if len(inside) != int(text) or any(each != "field_ref" for each, _ in inside):
                raise _Unknown
            open_calls[-1][1].append(Field(tuple(name for _, name in inside)))
            at += int(text)
        elif tag == "literal":
            open_calls[-1][1].append(Literal(batch.column(int(text))[0], int(text)))
        else:
            raise _Unknown
    if len(open_calls) != 1 or len(open_calls[0][1]) != 1:
        raise _Unknown
    return open_calls[0][1][0]


def _words(root: Node) -> Iterator[Word]:
    waiting: list[Node | Word] = [root]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple):
            yield one
        elif isinstance(one, Literal):
            yield "literal", str(one.place)
        elif isinstance(one, Field):
            if len(one.path) > 1:
                yield "nested_field_ref", str(len(one.path))
            yield from (("field_ref", name) for name in one.path)
        else:
            yield "call", one.function
            waiting.append(("end", one.function))
            if one.place >= 0:
                waiting.append(("options", str(one.place)))
            waiting.extend(reversed(one.arguments))


def _metadata_pairs(schema: pa.Schema) -> list[Word]:
    """Key and value of each entry of a schema's metadata in order, with duplicate keys.

    pyarrow returns a dict, which drops duplicates. The C data interface gives the bytes: the number of entries, then
    for each the length and bytes of key and value, all numbers as int32.
    """
    capsule = schema.__arrow_c_schema__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    members = ctypes.cast(get(capsule, b"arrow_schema"), ctypes.POINTER(ctypes.c_void_p))
    at = members[2]  # after the format and the name
    if not at:
        raise _Unknown
    texts = []
    count = ctypes.c_int32.from_address(at).value
    at += 4
    for _ in range(2 * count):
        length = ctypes.c_int32.from_address(at).value
        texts.append(ctypes.string_at(at + 4, length).decode())
        at += 4 + length
    return list(zip(texts[::2], texts[1::2], strict=True))
