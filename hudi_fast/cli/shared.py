"""What the commands have in common: their arguments and options, the table that they are about, how an answer is shown.

Here is also how somebody is asked before something is done that cannot be taken back.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_fast.services.table_services import TableServices
    from hudi_fast.table import HudiTable

__all__ = [
    "ask",
    "dry_run_option",
    "instant_text",
    "json_option",
    "open_table",
    "option_option",
    "options_of",
    "path_argument",
    "plan_only_option",
    "run_pending_option",
    "services_of",
    "show_answer",
    "show_plan",
    "show_result",
    "show_table",
    "storage_options",
    "yes_option",
]

_SHOWN_OF_A_PLAN = 50
_WHOLE = ("instant", "completion")
"""Columns whose values are hard to read when they are broken into lines."""

_SAYING_NOTHING = ("operation", "seconds")
"""What an answer holds even when nothing was done."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines in place of a table.")
option_option = click.option(
    "-o", "--option", "pairs", multiple=True, metavar="KEY=VALUE", help="A hoodie.* or hudi_fast.* option; repeatable."
)
path_argument = click.argument("path")
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
plan_only_option = click.option(
    "--plan-only", is_flag=True, help="Put a plan on the timeline for somebody else to carry out."
)
run_pending_option = click.option(
    "--run-pending", is_flag=True, help="Carry out what was planned, and plan nothing new."
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def open_table(path: str) -> HudiTable:
    """The table at a path."""
    from hudi_fast.table import HudiTable

    return HudiTable.open(path, storage_options())


def storage_options() -> dict[str, str]:
    """What the command line says about how to reach tables."""
    root = click.get_current_context().find_root()
    return options_of(root.params.get("storage_pairs", ()), "--storage-option")


def services_of(path: str) -> TableServices:
    """The services of the table at a path."""
    return open_table(path).services


def options_of(pairs: tuple[str, ...], hint: str = "-o") -> dict[str, str]:
    """``KEY=VALUE`` texts as a dictionary; wrong usage when one is none.

    Args:
        pairs: the texts.
        hint: the option that they were given with.
    """
    options: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE.", param_hint=hint)
        options[key.strip()] = value
    return options


def instant_text(text: str) -> str:
    """The requested time of an instant as a user gives it; wrong usage when it is none."""
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdigit()):
        raise click.BadParameter(f"{text!r} is not the time of an instant; `hudi-fast history` lists them.")
    return stripped


def ask(question: str, yes: bool) -> None:
    """Go on only if somebody says so; the question goes to standard error, so that answers stay clean.

    Raises:
        click.Abort: no, or nobody is there.
    """
    if not yes:
        click.confirm(question, abort=True, err=True)


def show_table(title: str, table: pa.Table, as_json: bool, hidden: list[str], more: str = "") -> None:
    """Print rows.

    Args:
        title: for people; the number of rows is added.
        table: the rows; machines get all columns.
        as_json: for machines.
        hidden: columns that are too wide for people, and follow from others.
        more: for people, below the rows.
    """
    from hudi_fast.cli.render import json_line

    if as_json:
        click.echo(json_line(table.to_pylist()))
    else:
        _show_to_people(f"{title} ({table.num_rows:,})", table, hidden, more)


def show_plan(
    title: str, table: pa.Table, as_json: bool, more: str = "", hidden: tuple[str, ...] = (), **words: Any
) -> None:
    """Print what would be done: for people the first rows of it, for machines all of it.

    Args:
        title: for people; the number of rows is added.
        table: one row for each thing that would be touched.
        as_json: for machines: an object with ``plan`` and the words.
        more: for people, below the rows.
        hidden: columns that people do without.
        words: what is to be said of the whole.
    """
    from hudi_fast.cli.render import json_line

    if as_json:
        click.echo(json_line({**words, "plan": table.to_pylist()}))
        return
    left = table.num_rows - _SHOWN_OF_A_PLAN
    notes = [f"{left:,} more; --json shows all." if left > 0 else "", more]
    shown = table.slice(0, _SHOWN_OF_A_PLAN)
    _show_to_people(f"{title} ({table.num_rows:,})", shown, list(hidden), " ".join(filter(None, notes)))


def _show_to_people(title: str, table: pa.Table, hidden: list[str], more: str) -> None:
    from hudi_fast.cli.render import show_rows
    from hudi_fast.cli.wording import figures, heading, readable

    rows = table.to_pylist()
    columns = [name for name in table.column_names if name not in hidden and rows]
    right, whole = figures(rows, columns), [name for name in columns if name in _WHOLE]
    headings, right = [heading(name) for name in columns], [heading(name) for name in right]
    show_rows(title, map(readable, rows), headings, more, right, whole)


def show_answer(done: str, nothing: str, instant: str, values: dict[str, Any], as_json: bool) -> None:
    """Print what a command did.

    Args:
        done: title when there is an instant.
        nothing: title when there is none; people then see those values alone that say something.
        instant: of what was done; empty for nothing.
        values: the rest by name.
        as_json: for machines.
    """
    from hudi_fast.cli.render import json_line, show_values
    from hudi_fast.cli.wording import readable

    if as_json:
        click.echo(json_line({"instant": instant, **values}))
    elif instant:
        if list(values.get("instants", ())) == [instant]:
            values = {name: value for name, value in values.items() if name != "instants"}
        show_values(done, readable({"instant": instant, **values}))
    else:
        telling = {name: value for name, value in values.items() if value and name not in _SAYING_NOTHING}
        show_values(nothing, readable(telling))


def show_result(done: str, nothing: str, result: Any, as_json: bool, without: tuple[str, ...] = ()) -> None:
    """Print the result of a service: its fields in their order.

    Args:
        done: title when something was done.
        nothing: title otherwise.
        result: a dataclass with ``instant``.
        as_json: for machines.
        without: fields to leave out.
    """
    names = [one.name for one in fields(result) if one.name not in (*without, "instant")]
    values = {name: getattr(result, name) for name in names}
    show_answer(done, nothing, result.instant, values, as_json)
