"""Types of the arguments and results of procedures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from hudi_fast.errors import UnsupportedFeatureError

__all__ = ["Rows", "Values", "refuse_given"]

Values: TypeAlias = Mapping[str, Any]
"""Values of all parameters by name; None without a value."""

Rows: TypeAlias = Iterable[Sequence[Any]]
"""Rows of the columns in the procedure's signature."""


def refuse_given(procedure: str, values: Values, *names: str, advice: str = "") -> None:
    """Refuse parameters that hudi_fast does not support.

    Args:
        procedure: its name.
        values: of its parameters.
        *names: parameters that must not have a value.
        advice: what to do instead, after ``is not supported``; empty without one.

    Raises:
        UnsupportedFeatureError: one of them has a value.
    """
    if given := [name for name in names if values.get(name)]:
        raise UnsupportedFeatureError(f"CALL {procedure}: {', '.join(given)} is not supported{advice}.")
