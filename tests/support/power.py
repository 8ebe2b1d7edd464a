"""Tables through a loss of power: a disk on which content that was not put there by then has a name only."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_fast.storage import local_store

__all__ = ["Disk", "kinds"]

kinds = pytest.mark.parametrize(
    ("version", "kind"),
    [
        pytest.param(version, kind, id=f"{kind[0].lower()}{version}")
        for version in ("6", "8", "9")
        for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
    ],
)
"""Table versions and types that are written."""


class Disk:
    """Follows what :mod:`hudi_fast.storage.local_store` puts on the disk.

    Args:
        root: the folder to follow.
        patch: takes the place of the function that waits for the disk.
    """

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._kept: dict[int, bytes] = {}
        self._watch: Callable[[], object] | None = None
        patch.setattr(local_store, "to_disk", self._to_disk)

    def after_loss(self, target: Path) -> Path:
        """A copy of the folder as a loss of power at this moment leaves it: files without content where it is lost."""
        shutil.rmtree(target, ignore_errors=True)
        for folder, _, names in os.walk(self.root):
            place = target / Path(folder).relative_to(self.root)
            place.mkdir(parents=True, exist_ok=True)
            for name in names:
                source = Path(folder) / name
                content = source.read_bytes()
                (place / name).write_bytes(content if self._kept.get(source.stat().st_ino) == content else b"")
                stat = source.stat()
                os.utime(place / name, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        return target

    def at_each_step(self, watch: Callable[[], object]) -> None:
        """Call ``watch`` whenever something gets on the disk."""
        self._watch = watch

    def _to_disk(self, name: str) -> None:
        if os.path.isfile(name):
            content = Path(name).read_bytes()
            self._kept[os.stat(name).st_ino] = content
        if self._watch is not None:
            self._watch()
