"""``HudiTable.services``: validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hudi_fast.services.validation.run import ValidationResult, validate_metadata
from hudi_fast.services.verbs import Options, ServiceVerbs

__all__ = ["ValidationVerbs"]


class ValidationVerbs(ServiceVerbs):
    """Comparing the metadata table with the table."""

    def validate(
        self,
        partitions: Sequence[str] = (),
        most: int = 1000,
        options: Options | None = None,
        *,
        spark: Any = None,
    ) -> ValidationResult:
        """Compare the metadata table with the files and rows of the table; nothing is written.

        Args:
            partitions: partitions of the metadata table to compare; empty for all.
            most: maximum number of listed differences per partition; all of them are counted.
            options: how rows merge, ``hudi_fast.threads``.
            spark: a Spark session: its tasks read the table and compare the file groups. Without, this process does.

        Raises:
            ConfigError: the metadata table has no such partition.
            CorruptTableError: a file of the table itself is damaged.
            UnsupportedFeatureError: the table merges its rows in a way that is not supported.
        """
        return validate_metadata(self._session(options, spark), tuple(partitions), most)
