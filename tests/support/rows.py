"""Compare two tables as sets of rows, and say what differs in a few lines.

Both sides are brought to one form first (column order, timestamps as UTC microseconds, no dictionaries, no large or
view types), then sorted by partition path and record key. Arrow compares the whole; only when that finds a difference
are rows turned into Python values, to name it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

__all__ = ["assert_same_rows", "normalised"]

META_KEYS = ("_hoodie_partition_path", "_hoodie_record_key")
SHOWN = 8


def assert_same_rows(
    left: pa.Table,
    right: pa.Table,
    ignore: Sequence[str] = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"),
    key: Sequence[str] | None = None,
) -> None:
    """Fail unless both tables hold the same rows, as often, whatever their order and the order of their columns.

    Args:
        left: the rows that were got.
        right: the rows that were expected.
        ignore: columns that are not compared.
        key: columns that rows are sorted and named by; by default the meta columns of partition and key, or all
            columns when the tables have none.
    """
    left, right = normalised(left, ignore), normalised(right, ignore)
    _assert_same_columns(left.schema, right.schema)
    if key is None:
        key = META_KEYS if set(META_KEYS) <= set(left.column_names) else ()
    left, right = _sorted(left, key), _sorted(right, key)
    if left.equals(right):
        return
    # NaN, the order of map entries and rows that share a key are beyond Arrow's comparison.
    got, wanted = _python_rows(left, key), _python_rows(right, key)
    if got != wanted:
        raise AssertionError(_difference(got, wanted, left.column_names))


def normalised(table: pa.Table, ignore: Sequence[str] = ()) -> pa.Table:
    """``table`` without the ignored columns, columns sorted by name, every type in its plainest form."""
    names = sorted(name for name in table.column_names if name not in ignore)
    chosen = table.select(names)
    schema = pa.schema([pa.field(field.name, _plain_type(field.type)) for field in chosen.schema])
    decoded = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in chosen.columns
    ]
    return pa.table(decoded, names=names).cast(schema).combine_chunks()


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC")
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", _plain_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    return kind


def _assert_same_columns(left: pa.Schema, right: pa.Schema) -> None:
    problems = [f"  only left: {name}" for name in left.names if name not in right.names]
    problems += [f"  only right: {name}" for name in right.names if name not in left.names]
    for name in left.names:
        if name in right.names and left.field(name).type != right.field(name).type:
            problems.append(f"  {name}: {left.field(name).type} != {right.field(name).type}")
    if problems:
        raise AssertionError("columns differ:\n" + "\n".join(problems))


def _sorted(table: pa.Table, key: Sequence[str]) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in key]) if key else table


def _python_rows(table: pa.Table, key: Sequence[str]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Every row as (key, all values), as text so that NaN equals NaN and everything can be sorted; sorted."""
    columns = {name: [repr(_canonical(value)) for value in table[name].to_pylist()] for name in table.column_names}
    rows = zip(*columns.values(), strict=True)
    keys = zip(*(columns[name] for name in key), strict=True) if key else ((),) * table.num_rows
    return sorted(zip(keys, rows, strict=True))


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _canonical(item) for name, item in value.items()}
    if isinstance(value, list):
        # Arrow gives a map as a list of pairs; entries have no order.
        items = [_canonical(item) for item in value]
        return sorted(items, key=repr) if items and all(isinstance(item, tuple) for item in items) else items
    if isinstance(value, tuple):
        return tuple(_canonical(item) for item in value)
    return value


def _difference(
    got: list[tuple[tuple[str, ...], tuple[str, ...]]],
    wanted: list[tuple[tuple[str, ...], tuple[str, ...]]],
    names: Sequence[str],
) -> str:
    lines = [f"rows differ: {len(got)} on the left, {len(wanted)} on the right"]
    left, right = _grouped(got), _grouped(wanted)
    by_key = len(left) > 1 or len(right) > 1
    for side, mine, other in (("left", left, right), ("right", right, left)):
        only = sorted(mine.keys() - other.keys())
        if only and by_key:
            lines.append(f"  {len(only)} keys only {side}: " + ", ".join("/".join(each) for each in only[:SHOWN]))
    different = [each for each in sorted(left.keys() & right.keys()) if left[each] != right[each]]
    lines.append(f"  {len(different)} keys with other rows" if by_key else "  no key to name rows by")
    for each in different[:SHOWN]:
        lines += _row_difference("/".join(each), left[each], right[each], names)
    return "\n".join(lines)


def _row_difference(
    label: str, left: list[tuple[str, ...]], right: list[tuple[str, ...]], names: Sequence[str]
) -> list[str]:
    if len(left) == len(right) == 1:
        pairs = zip(names, left[0], right[0], strict=True)
        return [f"  {label} {name}: {mine} != {other}" for name, mine, other in pairs if mine != other]
    only_left, only_right = _left_over(left, right), _left_over(right, left)
    lines = [f"  {label} {len(left)} rows != {len(right)} rows"]
    lines += [f"    only left:  {row}" for row in only_left[:SHOWN]]
    return lines + [f"    only right: {row}" for row in only_right[:SHOWN]]


def _left_over(mine: list[tuple[str, ...]], other: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    rest = list(other)
    over = []
    for row in mine:
        if row in rest:
            rest.remove(row)
        else:
            over.append(row)
    return over


def _grouped(rows: list[tuple[tuple[str, ...], tuple[str, ...]]]) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for key, row in rows:
        groups.setdefault(key, []).append(row)
    return groups
