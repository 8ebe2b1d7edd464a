"""Warns about ``hudi-defaults.conf``, Apache Hudi's machine-wide settings, which hudi_fast does not read.

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
    """Warn about the file and its keys.

    Warns:
        HudiWarning: the file exists and sets keys.
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
            f"{path} sets {', '.join(keys[:_SHOWN])}{more}. hudi_fast does not read this file: pass the settings that "
            "you need as options.",
            HudiWarning,
            stacklevel=4,
        )
