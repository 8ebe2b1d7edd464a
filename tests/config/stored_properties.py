"""Properties of tables that Apache Hudi made, by table name."""

from __future__ import annotations

import zipfile
from pathlib import Path

from hudi_fast.config.properties_file import parse_properties


def stored_properties() -> dict[str, dict[str, str]]:
    with zipfile.ZipFile(Path(__file__).parent / "data" / "properties.zip") as archive:
        return {
            name.removesuffix(".properties"): parse_properties(archive.read(name).decode("iso-8859-1"))
            for name in archive.namelist()
        }
