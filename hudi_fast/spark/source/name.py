"""What ``format`` takes for the data source."""

from __future__ import annotations

__all__ = ["SOURCE_NAME"]

SOURCE_NAME = "hudi_fast"
"""Name of the Python data source."""
