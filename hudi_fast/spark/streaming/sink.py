"""Each batch of a streaming query, written once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

__all__ = ["Sink", "sink"]


class Sink:
    """What ``foreachBatch`` calls: writes a batch to a table, once, however often it is called with it.

    Args:
        path: base path of the table.
        options: as :func:`sink`.
        mode: as :func:`sink`.
    """

    def __init__(self, path: str, options: Mapping[str, Any], mode: str = "append") -> None:
        self.path = path
        self.options = dict(options)
        self.mode = mode

    def __call__(self, df: Any, batch_id: int) -> None:
        """Write a batch."""
        raise NotImplementedError


def sink(path: str | os.PathLike[str], options: Mapping[str, Any] | None = None, mode: str = "append") -> Sink:
    """What to give to ``df.writeStream.foreachBatch``.

    Args:
        path: base path of the table, which is created when there is none.
        options: ``hoodie.*`` keys of the write and of the stream.
        mode: ``append``, or ``overwrite``: every batch takes the place of the whole table.
    """
    return Sink(os.fspath(path), options or {}, mode)
