"""Answers of commands as JSON, and options that keep other services out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

__all__ = ["QUIET", "SMALL", "answer"]

QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
SMALL = ["-o", "hoodie.metadata.enable=false"]


def answer(run: Callable[..., tuple[int, str, str]], *arguments: object) -> Any:
    """What a command prints as JSON; it must succeed without a remark."""
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)
