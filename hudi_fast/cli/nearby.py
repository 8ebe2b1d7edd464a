"""Which table a path on this machine was probably meant to name."""

from __future__ import annotations

import difflib
from pathlib import Path

__all__ = ["nearby_table"]

_LIMIT = 5


def nearby_table(path: str) -> str:
    """A sentence that names a table above, in or beside a path without one; empty if there is none."""
    place = Path(path)
    above = [one for one in place.parents if _is_table(one)]
    if above:
        return f"{path} is in the table {above[0]}."
    inside = _tables_in(place)
    if inside:
        more = " and more" if len(inside) > _LIMIT else ""
        return f"Tables in it: {', '.join(map(str, inside[:_LIMIT]))}{more}."
    beside = {one.name: one for one in _tables_in(place.parent)}
    close = difflib.get_close_matches(place.name, beside, 1)
    return f"Did you mean {beside[close[0]]}?" if close else ""


def _tables_in(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if _is_table(one))
    except OSError:  # no folder, or none that this user may list
        return []


def _is_table(folder: Path) -> bool:
    try:
        return (folder / ".hoodie").is_dir()
    except OSError:
        return False
