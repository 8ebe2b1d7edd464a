"""A table's Avro schema in the forms that catalogs store: Hive types, and Spark's JSON.

::

    {"type": "record", "fields": [...]} ─┬─ hive_type ─► "struct<a:int,b:array<string>>"
                                         └─ spark_fields ─► {"type":"struct","fields":[{"name":"a", ...

Sources: ``HiveSchemaUtil#convertField``, ``SparkSchemaUtils`` (Apache Hudi 1.2.0).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_fast.errors import UnsupportedFeatureError

__all__ = ["TypeRules", "hive_type", "spark_schema"]

_PLAIN_HIVE = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "enum": "string",
    "bytes": "binary",
    "fixed": "binary",
}
_PLAIN_SPARK = _PLAIN_HIVE | {"int": "integer", "long": "long"}
_TIMESTAMPS = ("timestamp-millis", "timestamp-micros")
_LOCAL_TIMESTAMPS = ("local-timestamp-millis", "local-timestamp-micros")

Avro = Any
"""A type of an Avro schema: a name, a mapping, or a list of them for a union."""


@dataclass(frozen=True, slots=True)
class TypeRules:
    """Rules for types that differ between releases and options.

    Attributes:
        has_timestamps: whether Hive's type of timestamps is ``timestamp``; otherwise ``bigint``.
        is_old: whether to follow Apache Hudi 0.15: timestamps without a zone are numbers, and no array has nulls.
    """

    has_timestamps: bool = True
    is_old: bool = False


def hive_type(avro: Avro, rules: TypeRules) -> str:
    """The Hive type of an Avro type.

    Args:
        avro: the type, parsed from JSON.
        rules: of the table.

    Raises:
        UnsupportedFeatureError: a union of several types.
    """
    kind, logical, node = _resolved(avro)
    if logical == "decimal":
        return f"decimal({node['precision']},{node.get('scale', 0)})"
    if logical == "date":
        return "date"
    if logical in _TIMESTAMPS or (logical in _LOCAL_TIMESTAMPS and not rules.is_old):
        return "timestamp" if rules.has_timestamps else "bigint"
    if kind == "array":
        return f"array<{hive_type(node['items'], rules)}>"
    if kind == "map":
        return f"map<string,{hive_type(node['values'], rules)}>"
    if kind == "record":
        inner = ",".join(f"{_nested_name(one['name'])}:{hive_type(one['type'], rules)}" for one in node["fields"])
        return f"struct<{inner}>".replace("-", "_").lower()
    return _PLAIN_HIVE[kind]


def spark_schema(fields: Iterable[Mapping[str, Any]], rules: TypeRules) -> str:
    """Spark's JSON of a schema, in exactly the text that Apache Hudi stores.

    Args:
        fields: fields of an Avro record.
        rules: of the table.

    Raises:
        UnsupportedFeatureError: a union of several types.
    """
    inner = ",".join(_spark_field(one, rules) for one in fields)
    return f'{{"type":"struct","fields":[{inner}]}}'


def _spark_field(field: Mapping[str, Any], rules: TypeRules) -> str:
    name, avro = json.dumps(field["name"], ensure_ascii=False), field["type"]
    return f'{{"name":{name},"type":{_spark_type(avro, rules)},"nullable":{_json(_is_nullable(avro))},"metadata":{{}}}}'


def _spark_type(avro: Avro, rules: TypeRules) -> str:
    kind, logical, node = _resolved(avro)
    if logical == "decimal":
        return f'"decimal({node["precision"]},{node.get("scale", 0)})"'
    if logical == "date":
        return '"date"'
    if logical in _TIMESTAMPS:
        return '"timestamp"'
    if logical in _LOCAL_TIMESTAMPS and not rules.is_old:
        return '"timestamp_ntz"'
    if kind == "array":
        item, nullable = _spark_type(node["items"], rules), _json(_is_nullable(node["items"]) and not rules.is_old)
        return f'{{"type":"array", "elementType":{item},"containsNull":{nullable}}}'
    if kind == "map":
        value, nullable = _spark_type(node["values"], rules), _json(_is_nullable(node["values"]))
        return f'{{"type":"map", "keyType":"string","valueType":{value},"valueContainsNull":{nullable}}}'
    return spark_schema(node["fields"], rules) if kind == "record" else f'"{_PLAIN_SPARK[kind]}"'


def _json(flag: bool) -> str:
    return "true" if flag else "false"


def _resolved(avro: Avro) -> tuple[str, str, Mapping[str, Any]]:
    """Kind, logical type ("" for none) and attributes of a type that may be nullable."""
    if isinstance(avro, list):
        kinds = [one for one in avro if one != "null"]
        if len(kinds) != 1:
            raise UnsupportedFeatureError(f"A catalog has no type for the Avro union {json.dumps(avro)}.")
        avro = kinds[0]
    if isinstance(avro, str):
        return avro, "", {}
    if isinstance(avro["type"], (dict, list)):
        return _resolved(avro["type"])
    return avro["type"], avro.get("logicalType", ""), avro


def _is_nullable(avro: Avro) -> bool:
    return isinstance(avro, list) and "null" in avro


def _nested_name(name: str) -> str:
    """The name of a field of a struct: Hive does not read a dollar sign in it."""
    return name.replace("$", "_dollar_")
