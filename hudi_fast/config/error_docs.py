"""Generator of the table of errors in docs/errors.md from the classes.

``python -m hudi_fast.config.error_docs docs/errors.md`` regenerates the table; the rest of the page stays.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hudi_fast import errors
from hudi_fast.errors import HudiError

__all__ = ["error_table", "with_error_table"]

_BEGIN, _END = "<!-- begin: table of errors, generated from hudi_fast/errors.py -->", "<!-- end: table of errors -->"


def error_table() -> str:
    """One row for each error class; a subclass follows its base class."""
    rows = [f"| {_named(one)} | {_meaning(one)} | {one.__dict__.get('advice', '')} |" for one in _tree(HudiError)]
    return "\n".join(["| class | raised when | what to do |", "|---|---|---|", *rows]) + "\n"


def with_error_table(page: str) -> str:
    """The page with the current table between its two marks.

    Raises:
        ValueError: the marks are missing.
    """
    before, after = page.partition(_BEGIN), page.partition(_END)
    if not before[1] or not after[1]:
        raise ValueError(f"The page lacks the lines {_BEGIN!r} and {_END!r}.")
    return f"{before[0]}{_BEGIN}\n\n{error_table()}\n{_END}{after[2]}"


def _tree(kind: type[HudiError]) -> list[type[HudiError]]:
    """A class and its subclasses, in the order of the module."""
    below = [one for one in vars(errors).values() if isinstance(one, type) and kind in one.__bases__]
    return [kind, *(each for one in below for each in _tree(one))]


def _named(kind: type[HudiError]) -> str:
    others = [f"`{one.__name__}`" for one in kind.__bases__ if one not in (HudiError, Exception)]
    return f"`{kind.__name__}`" + (f" (also {', '.join(others)})" if others else "")


def _meaning(kind: type[HudiError]) -> str:
    first = (kind.__doc__ or "").partition("\n")[0].strip().removesuffix(".").replace("``", "`")
    first = first.replace(":class:", "")
    return first[:1].lower() + first[1:]


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(with_error_table(target.read_text(encoding="utf-8")), encoding="utf-8")
