"""Generators of docs/options.md and of the table in docs/errors.md.

Generator of docs/options.md from the registry of options.

``python -m hudi_fast.config.generated_docs > docs/options.md`` regenerates the page.

Generator of the table of errors in docs/errors.md from the classes.

``python -m hudi_fast.config.generated_docs docs/errors.md`` regenerates the table; the rest of the page stays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from hudi_fast import errors
from hudi_fast.config.accepted_options import ACCEPTED_GROUPS, ACCEPTED_PREFIXES
from hudi_fast.config.option_fields import Kind, Option
from hudi_fast.config.options import SECTIONS
from hudi_fast.errors import HudiError

__all__ = ["error_table", "options_page", "with_error_table"]

_INTRO = """\
# Options

Keys are Apache Hudi's, in every spelling that Hudi accepts. Values may be text, booleans, numbers or lists of names.

- An invalid value raises `ConfigError`. A valid Hudi value that hudi_fast does not support raises
  `UnsupportedFeatureError`, and so does any value of an option marked *refused*.
- Two spellings of one option with different values raise `ConfigError`.
- An unknown `hoodie.` key raises a `HudiWarning` once. An unknown `hudi_fast.` key raises `ConfigError`.
- Other keys are stored in the extra metadata of the commit if they begin with
  `hoodie.datasource.write.commitmeta.key.prefix` (default `_`), and raise `ConfigError` otherwise.
- A write ignores read options, and a read ignores write options.
"""


def options_page() -> str:
    """The page: one table per subject, then the keys that are accepted without effect."""
    parts = [_INTRO]
    parts += [f"## {title}\n\n{_table(options)}" for title, options in SECTIONS]
    parts.append("## Accepted without effect\n\n" + "\n\n".join(_accepted_groups()) + "\n")
    parts.append(
        "All keys with these prefixes, unless the page lists them above:\n\n" + "\n".join(_accepted_prefixes()) + "\n"
    )
    return "\n".join(parts)


def _table(options: Iterable[Option]) -> str:
    lines = ["| key | values | default | meaning |", "|---|---|---|---|"]
    lines += [f"| {_keys(option)} | {_values(option)} | {_default(option)} | {option.doc} |" for option in options]
    return "\n".join(lines) + "\n"


def _keys(option: Option) -> str:
    also = "".join(f"<br>also `{alias}`" for alias in option.aliases)
    return f"`{option.key}`{also}"


def _values(option: Option) -> str:
    if option.supported is not None:
        return f"`{option.supported_text()}`" if option.supported else "*refused*"
    if option.kind is Kind.ENUM:
        return f"`{', '.join(option.choices)}`"
    extra = option.range_text() or option.unit
    return f"{option.kind.value}, {extra}" if extra else option.kind.value


def _default(option: Option) -> str:
    if option.default is None:
        return "–"
    if isinstance(option.default, bool):
        return "`true`" if option.default else "`false`"
    text = ",".join(option.default) if isinstance(option.default, tuple) else str(option.default)
    return f"`{text}`" if text else "empty"


def _accepted_groups() -> list[str]:
    return [f"{doc}\n\n" + "\n".join(f"- `{key}`" for key in keys.split()) for doc, keys in ACCEPTED_GROUPS]


def _accepted_prefixes() -> list[str]:
    return [f"- `{prefix}*`: {doc}" for prefix, doc in ACCEPTED_PREFIXES]


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
    if sys.argv[1:]:
        target = Path(sys.argv[1])
        target.write_text(with_error_table(target.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(options_page())
