"""``HudiTable.services``: cleaning."""

from __future__ import annotations

from typing import Any

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.services.verbs import Options, ServiceVerbs

__all__ = ["CleaningVerbs"]


class CleaningVerbs(ServiceVerbs):
    """Cleaning."""

    def clean(self, options: Options | None = None, spark: Any = None) -> None:
        """Not supported yet."""
        raise UnsupportedFeatureError("Cleaning is not supported yet. Use Apache Hudi for it.")
