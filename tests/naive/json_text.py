"""JSON of values as Java writes it, one value at a time."""

from __future__ import annotations

import base64
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np

SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def quoted(text: str, avro: bool) -> str:
    return '"' + "".join(_escaped(character, avro) for character in text) + '"'


def _escaped(character: str, avro: bool) -> str:
    code = ord(character)
    wide = avro and (0x7F <= code <= 0x9F or 0x2000 <= code <= 0x20FF)
    return SHORT.get(character) or (f"\\u{code:04X}" if code < 0x20 or wide else character)


def number(value: float, single: bool = False) -> str:
    """``Double.toString``, or ``Float.toString`` of a single-precision value."""
    if math.isnan(value) or math.isinf(value):
        return '"NaN"' if math.isnan(value) else ('"Infinity"' if value > 0 else '"-Infinity"')
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign, digits, exponent = Decimal(_shortest(value, single)).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    if -3 < point <= 7:
        padded = "0" * (1 - point) + text + "0" * (point + 1 - len(text))
        place = max(point, 1)
        text = padded[:place] + "." + (padded[place:] or "0")
    else:
        text = f"{text[0]}.{text[1:] or '0'}E{point - 1}"
    return ("-" if sign else "") + text


def _shortest(value: float, single: bool) -> str:
    """The fewest digits that mean the value; where one is enough the nearest number of two, if it means the value."""
    text = str(np.float32(value)) if single else repr(value)
    if len(Decimal(text).normalize().as_tuple().digits) > 1:
        return text
    nearest = f"{value:.1e}"
    return nearest if (float(np.float32(nearest)) if single else float(nearest)) == value else text


def row(members: dict[str, Any], avro: bool) -> str:
    """An object of the texts of its members; None is a member that is null."""
    if avro:
        shown = [f"{json.dumps(name, ensure_ascii=False)}: {text or 'null'}" for name, text in members.items()]
        return "{" + ", ".join(shown) + "}"
    shown = [f"{json.dumps(name, ensure_ascii=False)}:{text}" for name, text in members.items() if text is not None]
    return "{" + ",".join(shown) + "}"


def value(found: Any, avro: bool, kind: str = "") -> str | None:
    """The text of any value that Arrow's ``to_pylist`` gives; ``kind`` tells ``float``, ``map``, ``fixed`` apart."""
    if found is None:
        return None
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, float):
        return number(found, kind == "float")
    if isinstance(found, str):
        return quoted(found, avro)
    if isinstance(found, bytes):
        if not avro:
            return f'"{base64.b64encode(found).decode()}"'
        signed = [byte - 256 if byte > 127 else byte for byte in found]
        return str(signed) if kind == "fixed" else quoted(found.decode("latin-1"), avro)
    if isinstance(found, dict):
        return row({name: value(one, avro) for name, one in found.items()}, avro)
    if isinstance(found, list):
        if kind == "map":
            return row({name: value(one, avro) for name, one in found}, avro)
        return "[" + (", " if avro else ",").join(value(one, avro) or "null" for one in found) + "]"
    return str(found)
