"""What a table's commits changed, by a model of plain dictionaries; and the changes that a query gives, as values."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

__all__ = ["Model", "changes_of", "plain"]

Row = dict[str, Any]
Change = tuple[str, str, str | None, str | None]


def plain(text: str | None) -> str | None:
    """A row's JSON without meta columns and nulls, members in one order: both spellings become one."""
    row = None if text is None else json.loads(text)
    if row is None:
        return None
    kept = {name: value for name, value in row.items() if value is not None and not name.startswith("_hoodie_")}
    return json.dumps(kept, sort_keys=True)


def changes_of(changes: pa.Table) -> list[Change]:
    """All changes, sorted; rows as :func:`plain` has them."""
    rows = changes.to_pylist()
    return sorted(((one["op"], one["ts_ms"], plain(one["before"]), plain(one["after"])) for one in rows), key=repr)


class Model:
    """Rows by key, and what each commit changed of them."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.changes: list[Change] = []

    def upsert(self, instant: str, rows: list[Row]) -> None:
        """Rows whose ordering value ``ts`` is at least the stored one's win."""
        for row in rows:
            old = self.rows.get(row["id"])
            if old is None or row["ts"] >= old["ts"]:
                self._change(instant, "i" if old is None else "u", old, row)
                self.rows[row["id"]] = row

    def delete(self, instant: str, keys: list[str]) -> None:
        """Rows go."""
        for key in keys:
            if key in self.rows:
                self._change(instant, "d", self.rows.pop(key), None)

    def since(self, begin: str) -> list[Change]:
        """The changes after a commit, sorted as :func:`changes_of` sorts them."""
        return sorted((one for one in self.changes if one[1] > begin), key=repr)

    def _change(self, instant: str, op: str, old: Row | None, new: Row | None) -> None:
        before, after = (None if row is None else plain(json.dumps(row)) for row in (old, new))
        self.changes.append((op, instant, before, after))
