"""Options of change data capture: what a new table is to log of its changes.

Defaults are those of Apache Hudi 1.2.0 (``HoodieTableConfig``). They are properties of the table: a table that is there
keeps its own, whatever wrote it.
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import Kind, Option

__all__ = ["CDC_OPTIONS"]

CDC_OPTIONS = (
    Option(
        "hoodie.table.cdc.enabled",
        Kind.BOOL,
        False,
        "Write a change log beside each base file that is rewritten, for change queries; of a new table.",
    ),
    Option(
        "hoodie.table.cdc.supplemental.logging.mode",
        Kind.ENUM,
        "DATA_BEFORE_AFTER",
        "What a change log keeps of a row: what it was and became, what it was, or its key.",
        choices=("DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY"),
    ),
)
