"""Options of change data capture (CDC) of a new table.

Defaults are those of Apache Hudi 1.2.0 (``HoodieTableConfig``). Existing tables keep their own settings.
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import Kind, Option

__all__ = ["CDC_OPTIONS"]

CDC_OPTIONS = (
    Option(
        "hoodie.table.cdc.enabled",
        Kind.BOOL,
        False,
        "New tables: write a change log for each rewritten base file, for CDC queries.",
    ),
    Option(
        "hoodie.table.cdc.supplemental.logging.mode",
        Kind.ENUM,
        "DATA_BEFORE_AFTER",
        "Contents of the change log per row: both images, the image before the change, or the key only.",
        choices=("DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY"),
    ),
)
"""Options of change data capture."""
