"""Timelines of tables that Apache Hudi made: ``.hoodie`` without data, metadata table and archive."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.stem for path in DATA.glob("*.zip"))


@dataclass(frozen=True)
class StoredTimeline:
    storage: Storage
    config: TableConfig
    about: dict


def unzip_timeline(name: str, folder: Path) -> StoredTimeline:
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        archive.extractall(folder)
    storage = Storage(folder / "table")
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    return StoredTimeline(storage, config, json.loads((folder / "expected" / "about.json").read_text()))


def bodies(name: str, ending: str) -> list[tuple[str, bytes]]:
    """(name, content) of the files whose names end so."""
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        return [(n.rpartition("/")[2], archive.read(n)) for n in archive.namelist() if n.endswith(ending)]
