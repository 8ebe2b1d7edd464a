"""Generator of docs/options.md from the registry of options.

``python -m hudi_fast.config.option_docs > docs/options.md`` regenerates the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from hudi_fast.config.accepted_options import ACCEPTED_GROUPS, ACCEPTED_PREFIXES
from hudi_fast.config.option_descriptor import Kind, Option
from hudi_fast.config.options import SECTIONS

__all__ = ["options_page"]

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


if __name__ == "__main__":
    sys.stdout.write(options_page())
