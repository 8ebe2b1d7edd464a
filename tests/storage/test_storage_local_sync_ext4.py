"""A real file system through a loss of power: the image of a mounted ext4 disk is copied, which the disk then holds.

The copy has what reached the disk, and nothing of what the operating system keeps in memory; ext4 replays its journal
when the copy is mounted. It takes root, and a kernel that mounts files.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hudi_fast as hf
from tests.support.small_tables import options, plain_rows

pytestmark = pytest.mark.slow

MEGABYTES = 48
JOURNAL_SECONDS = 1
"""Between two writes of ext4's journal, which puts new names on the disk."""

WRITER = """
import sys
import hudi_fast as hf
from tests.support.small_tables import options, plain_rows
path, kind, fsync, first = *sys.argv[1:4], int(sys.argv[4])
settings = options() | {"hoodie.datasource.write.table.type": kind, "hudi_fast.fsync": fsync}
for number in range(first, first + 1000):
    hf.write(plain_rows(range(number, number + 8), ts=number), path, settings)
    print(number, flush=True)
"""


class Ext4:
    """An ext4 file system in a file, mounted, and copies of that file, mounted, too."""

    def __init__(self, home: Path) -> None:
        self.home, self.image, self.root = home, home / "image", home / "disk"
        with self.image.open("wb") as file:
            file.truncate(MEGABYTES << 20)
        self._mounted: list[Path] = []
        self._run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.image)
        self._mount(self.image, self.root)

    def after_loss(self, name: str) -> Path:
        """The file system as a loss of power at this moment leaves it."""
        copy = self.home / f"{name}.image"
        shutil.copyfile(self.image, copy)
        return self._mount(copy, self.home / name)

    def close(self) -> None:
        for place in reversed(self._mounted):
            subprocess.run(["umount", place], check=False)

    def _mount(self, image: Path, place: Path) -> Path:
        place.mkdir()
        self._run("mount", "-o", f"loop,commit={JOURNAL_SECONDS}", image, place)
        self._mounted.append(place)
        return place

    def _run(self, *command: object) -> None:
        subprocess.run([str(part) for part in command], check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Ext4]:
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("mounting a file system takes root and mkfs.ext4")
    try:
        made = Ext4(tmp_path)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no file system can be mounted here: {error.stderr.decode().strip()}")
    yield made
    made.close()


class Writer:
    """A process that writes to a table until it is closed.

    Args:
        path: of the table.
        kind: type of the table.
        fsync: whether commits are put on the disk.
        first: number of the first write.
    """

    def __init__(self, path: Path, kind: str, fsync: str, first: int = 0) -> None:
        command = [sys.executable, "-c", WRITER, path, kind, fsync, str(first)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def acknowledged(self) -> int:
        """Wait for the next write that is acknowledged; its number."""
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def pause(self) -> None:
        """Stop the process where it is, until :meth:`go_on`."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def rows_after(last: int) -> dict[str, int]:
    """Keys and ordering values after the writes 0 to ``last``."""
    return {f"k{key:05}": min(key, last) for key in range(last + 8)}


def given(kind: str) -> dict[str, str]:
    """Options of a write to a copy, without a clean: one that the copy has pending names files of the first place."""
    return options() | {"hoodie.datasource.write.table.type": kind, "hoodie.clean.automatic": "false"}


def found(path: Path) -> dict[str, int]:
    rows = hf.HudiTable.open(path).to_arrow(columns=["id", "ts"])
    return dict(zip(rows["id"].to_pylist(), rows["ts"].to_pylist(), strict=True))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_disk_without_power_has_every_acknowledged_commit(disk: Ext4, kind: str) -> None:
    """The power is cut right after an acknowledgement, and at moments of the writes that follow."""
    with Writer(disk.root / "t", kind, "true") as writer:
        for number, wait in enumerate((0.0, 0.01, 0.03, 0.06, 0.1, 1.5)):
            last = writer.acknowledged()
            time.sleep(wait)
            writer.pause()
            left = disk.after_loss(f"left{number}") / "t"
            writer.go_on()
            after = found(left)
            newest = max(after.values())
            assert newest >= last
            assert after == rows_after(newest)
            hf.write(plain_rows([0], ts=10_000), left, given(kind))
            assert found(left) == rows_after(newest) | {"k00000": 10_000}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_commit_that_nobody_put_on_the_disk_is_missed_loudly(disk: Ext4, kind: str) -> None:
    """Without fsync, as other writers work, names reach the disk before contents."""
    with Writer(disk.root / "t", kind, "true") as writer:
        first = writer.acknowledged()
    with Writer(disk.root / "t", kind, "false", first + 1) as writer:
        last = writer.acknowledged()
        writer.pause()
        time.sleep(JOURNAL_SECONDS * 3)
        left = disk.after_loss("left") / "t"
    with pytest.raises(hf.CorruptTableError, match="no content"):
        found(left)
    with pytest.raises(hf.CorruptTableError, match="no content"):
        hf.write(plain_rows([0], ts=last + 1), left, given(kind))
    assert hf.HudiTable.open(left).services.plan_repair().findings
