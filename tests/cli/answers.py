"""Answers of commands as JSON, and options that keep other services out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

__all__ = ["QUIET", "SMALL", "answer", "answers", "lines"]

QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
SMALL = ["-o", "hoodie.metadata.enable=false"]


def lines(out: str) -> list[Any]:
    """The objects of a command that prints JSON: one a line."""
    return [json.loads(line) for line in out.splitlines()]


def answers(run: Callable[..., tuple[int, str, str]], *arguments: object) -> list[Any]:
    """What a command prints as JSON; it must succeed without a remark."""
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    return lines(out)


def answer(run: Callable[..., tuple[int, str, str]], *arguments: object) -> Any:
    """The one object that a command prints as JSON."""
    (one,) = answers(run, *arguments)
    return one
