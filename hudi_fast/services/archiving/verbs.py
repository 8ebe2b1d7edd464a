"""``HudiTable.services``: archiving."""

from __future__ import annotations

from typing import Any

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.services.verbs import Options, ServiceVerbs

__all__ = ["ArchivingVerbs"]


class ArchivingVerbs(ServiceVerbs):
    """Archiving."""

    def archive(self, options: Options | None = None, spark: Any = None) -> None:
        """Not supported yet."""
        raise UnsupportedFeatureError("Archiving the timeline is not supported yet. Use Apache Hudi for it.")
