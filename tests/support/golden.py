"""The tables in ``tests/tables``, unzipped, with what real Hudi answers about them."""

from __future__ import annotations

import errno
import json
import os
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["TABLES", "Golden", "GoldenStore", "golden_names", "unzip_golden"]

TABLES = Path(__file__).parents[1] / "tables"


@dataclass(frozen=True, slots=True)
class Golden:
    """One table that real Hudi wrote.

    Attributes:
        name: as in ``tests/tables``, for example ``cow_v9_mixed`` or ``hudi_rs/cow_v8_empty``.
        table: the table's folder; the test may change it.
        answers: the folder of expected answers; does not exist for ``hudi_rs/*``.
        expected: ``about.json``: bundle version, options, instants ...; empty for ``hudi_rs/*``.
    """

    name: str
    table: Path
    answers: Path
    expected: dict[str, Any]

    def snapshot(self) -> pa.Table:
        """Rows of real Hudi's snapshot query."""
        return self.answer("snapshot")

    def answer(self, query: str) -> pa.Table:
        """Rows of ``snapshot``, ``read_optimized``, ``incremental`` or ``as_of``."""
        return pq.read_table(self.answers / f"{query}.parquet", partitioning=None).replace_schema_metadata(None)

    def has(self, query: str) -> bool:
        """Whether there are expected rows for that query."""
        return (self.answers / f"{query}.parquet").exists()

    def cdc(self) -> list[dict[str, Any]]:
        """Rows of real Hudi's change data capture query."""
        return list(json.loads((self.answers / "cdc.json").read_text()))


def golden_names(prefix: str = "") -> list[str]:
    """Names of the tables that begin with ``prefix``, sorted; use them to parametrise a test.

    Those of old releases (``old/``) have fewer answers, and are named only if the prefix says so.
    """
    names = (str(path.relative_to(TABLES).with_suffix("")) for path in TABLES.rglob("*.zip"))
    return sorted(
        name for name in names if name.startswith(prefix) and name.startswith("old/") <= (prefix[:4] == "old/")
    )


def unzip_golden(name: str, folder: Path) -> Golden:
    """Unzip a table into a new folder below ``folder``."""
    target = folder / name
    target.mkdir(parents=True)
    with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
        for entry in archive.namelist():
            if not entry.startswith("__MACOSX/") and not entry.endswith(".DS_Store"):
                archive.extract(entry, target)
    return _golden(name, target)


class GoldenStore:
    """Tables of ``tests/tables``, each unzipped once.

    Tests get copies made of hard links, which cost a tenth of an unzipped table. A program that reads and writes
    tables creates and deletes files; it changes none in place. A test that does is an error: :meth:`verify` notices it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, dict[Path, tuple[int, int]]] = {}

    def linked(self, name: str, folder: Path) -> Golden:
        """A copy of a table in a new folder below ``folder``, made of links if both are on one file system."""
        source = self._folder / name
        if name not in self._files:
            unzip_golden(name, self._folder)
            self._files[name] = _states(source)
        shutil.copytree(source, folder / name, copy_function=_link)
        return _golden(name, folder / name)

    def verify(self, name: str) -> None:
        """Fail, and forget the table, if one of its files was changed in place."""
        states = self._files[name]
        changed = [path for path, state in _states(self._folder / name).items() if states.get(path) != state]
        if changed:
            del self._files[name]
            shutil.rmtree(self._folder / name)
            raise AssertionError(
                f"The test changes a file of {name} in place ({changed[0].name}): take golden(name, own=True)."
            )


def _states(folder: Path) -> dict[Path, tuple[int, int]]:
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            status = path.stat()
            found[path] = (status.st_mtime_ns, status.st_size)
    return found


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shutil.copy2(source, target)


def _golden(name: str, folder: Path) -> Golden:
    about = folder / "expected" / "about.json"
    expected = json.loads(about.read_text()) if about.exists() else {}
    (table,) = (path.parent for path in folder.glob("*/.hoodie"))
    return Golden(name, table, folder / "expected", expected)
