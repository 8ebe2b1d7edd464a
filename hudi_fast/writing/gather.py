"""Rows of columns by number, see :mod:`hudi_fast.merge.gather`."""

from __future__ import annotations

from hudi_fast.merge.gather import gather, gather_array

__all__ = ["gather", "gather_array"]
