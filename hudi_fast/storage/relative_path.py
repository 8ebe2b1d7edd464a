"""Paths of files below a table's base path. They come from tables, and tables are untrusted."""

from __future__ import annotations

from hudi_fast.errors import ConfigError

__all__ = ["check_relative", "fault_of"]


def check_relative(path: str) -> str:
    """Return ``path`` if it stays below the base path; file names in a table are untrusted and may leave it.

    Raises:
        ConfigError: the path leaves the base path or is invalid.
    """
    fault = fault_of(path)
    if fault is not None:
        raise ConfigError(f"The path {path!r} {fault}.")
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
