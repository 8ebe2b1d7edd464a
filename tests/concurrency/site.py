"""Where the table of a world is: on this machine's disk or in an object store."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import hudi_fast as hf
from hudi_fast.storage.base import Storage

__all__ = ["Site"]

_OLD_SECONDS = 86_400
_SIGNS = ".hoodie/.heartbeat"


@dataclass(frozen=True, slots=True)
class Site:
    """The place of a table, and a folder for what is beside it.

    Attributes:
        folder: of this machine: events, leases, the locks of machines.
        address: of the table.
        options: ``storage_options`` of the table.
    """

    folder: Path
    address: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def on_disk(cls, folder: Path) -> Site:
        """A table in the folder itself."""
        return cls(folder, str(folder / "table"))

    def storage(self) -> Storage:
        """The storage of the table."""
        return Storage(self.address, self.options)

    def table(self) -> hf.HudiTable:
        """The table."""
        return hf.HudiTable(self.storage())

    def end_signs_of_life(self) -> None:
        """Make signs of life old; in an object store, whose times nobody can set, take them away."""
        storage, past = self.storage(), time.time() - _OLD_SECONDS
        for sign in storage.list_dir(_SIGNS):
            if storage.is_local:
                os.utime(storage.fs_path(sign.path), (past, past))
            else:
                storage.delete_file(sign.path)

    def to_json(self) -> dict[str, Any]:
        """The site as plain data."""
        return {**asdict(self), "folder": str(self.folder)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Site:
        """The site of :meth:`to_json`."""
        return cls(Path(data["folder"]), data["address"], data["options"])
