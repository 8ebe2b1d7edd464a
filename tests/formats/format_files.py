"""Real log files and HFiles of ``data/``, and what happens to files on the way: bytes that change, go and come."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

from hudi_fast.storage.base import Storage

DATA = Path(__file__).with_name("data")


def real_files(name: str) -> dict[str, bytes]:
    """Content of each file in ``data/<name>.zip`` by its name."""
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        return {entry: archive.read(entry) for entry in archive.namelist()}


def log_files(table: Path) -> Iterator[Path]:
    """The log files of an unzipped table, its metadata table's too."""
    return (path for path in sorted(table.rglob(".*.log.*")) if path.suffix != ".crc")


class DistantStorage(Storage):
    """A local folder that is read as an object store is: by ranges, never mapped."""

    @property
    def is_local(self) -> bool:
        return False


@st.composite
def damaged(draw, raw: bytes) -> bytes:
    """``raw`` after one to three changes: bytes replaced, cut out, put in, or cut off at the end."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(raw) - 1)))
        kind = draw(st.sampled_from(["flip", "number", "cut", "insert", "end"]))
        if kind == "flip":
            raw = raw[:at] + bytes([draw(st.integers(0, 255))]) + raw[at + 1 :]
        elif kind == "number":
            value = draw(st.sampled_from([0, 1, 2, 7, 127, 2**31 - 1, -1, -(2**31), 2**24, 9]))
            raw = raw[:at] + value.to_bytes(4, "big", signed=True) + raw[at + 4 :]
        elif kind == "cut":
            raw = raw[:at] + raw[at + draw(st.integers(1, 40)) :]
        elif kind == "insert":
            raw = raw[:at] + draw(st.sampled_from([b"#HUDI#", b"\0", b"#HUD", b"\xff" * 9])) + raw[at:]
        else:
            raw = raw[:at]
    return raw
