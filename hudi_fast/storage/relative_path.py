"""Paths of files below a table's base path. They come from tables, and tables are untrusted."""

from __future__ import annotations

from hudi_fast.errors import CorruptTableError

__all__ = ["check_relative", "fault_of"]


def check_relative(path: str, where: str | None = None) -> str:
    """Return ``path`` if it stays below the base path; file names in a table are untrusted and may leave it.

    Args:
        path: relative to the base path.
        where: file of the table that names it.

    Raises:
        CorruptTableError: the path leaves the base path or is invalid.
    """
    fault = fault_of(path)
    if fault is not None:
        raise CorruptTableError(f"The path {path!r} {fault}. Correct or restore the file that names it.", where)
    return path


def fault_of(path: str) -> str | None:
    """The reason why a path is invalid; backslashes count as separators, because other systems read tables too."""
    if path.startswith("/") or ".." in path.replace("\\", "/").split("/"):
        return "leaves the table's base path"
    if "\0" in path:
        return "holds a NUL character"
    try:
        path.encode()
    except UnicodeEncodeError:
        return "is not UTF-8"
    return None
