"""Where tests keep their files: in memory, where the machine has such a file system with enough room.

Tests make some hundred thousand small files and remove them. On a disk each removal may take a millisecond.
"""

from __future__ import annotations

import os

__all__ = ["memory_folder"]

FOLDER = "/dev/shm"
ROOM = 8 * 1024**3
"""Bytes that must be free: several times what tests were seen to leave there."""


def memory_folder() -> str | None:
    """The folder of the file system in memory; None where it is small, absent, or runs no programs."""
    if not os.access(FOLDER, os.W_OK):
        return None
    found = os.statvfs(FOLDER)
    runs_programs = not found.f_flag & getattr(os, "ST_NOEXEC", 0)  # compiled kernels are loaded from there
    return FOLDER if runs_programs and found.f_bavail * found.f_frsize >= ROOM else None
