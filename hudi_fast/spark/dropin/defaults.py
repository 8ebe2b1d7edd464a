"""``hudi-defaults.conf``: settings of Apache Hudi for a whole machine, which hudi_fast does not read, and says so.

Apache Hudi looks in the folder that ``HUDI_CONF_DIR`` names, else in ``/etc/hudi/conf``
(``DFSPropertiesConfiguration``, Hudi 1.2.0).
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from hudi_fast.errors import HudiWarning

__all__ = ["warn_of_defaults"]

_FILE = "hudi-defaults.conf"
_FOLDER = "/etc/hudi/conf"
_SHOWN = 5


def warn_of_defaults() -> None:
    """Name the file and what it sets, if there is one that sets anything.

    Warns:
        HudiWarning: there is.
    """
    path = Path(os.environ.get("HUDI_CONF_DIR") or _FOLDER) / _FILE
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    keys = [line.replace("=", " ").split()[0] for line in lines if line.strip(" \t=") and not line.startswith("#")]
    if keys:
        more = ", ..." if len(keys) > _SHOWN else ""
        warnings.warn(
            f"{path} sets {', '.join(keys[:_SHOWN])}{more}, which hudi_fast does not read: give as options what is "
            "wanted of it.",
            HudiWarning,
            stacklevel=4,
        )
