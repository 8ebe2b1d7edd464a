"""The name of the data source for ``format``."""

from __future__ import annotations

__all__ = ["SOURCE_NAME"]

SOURCE_NAME = "hudi_fast"
"""Name of the Python data source."""
