"""What the commands share: their arguments and options, the table that they are about, how an answer is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_fast.table import HudiTable

__all__ = [
    "json_option",
    "open_table",
    "option_option",
    "options_of",
    "path_argument",
    "show_answer",
    "show_table",
]

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines in place of a table.")
option_option = click.option(
    "-o", "--option", "pairs", multiple=True, metavar="KEY=VALUE", help="A hoodie.* or hudi_fast.* option; repeatable."
)
path_argument = click.argument("path")


def open_table(path: str) -> HudiTable:
    """The table at a path."""
    from hudi_fast.table import HudiTable

    return HudiTable.open(path)


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


def show_table(title: str, table: pa.Table, as_json: bool, hidden: list[str]) -> None:
    """Print rows.

    Args:
        title: for people; the number of rows is added.
        table: the rows; machines get all columns.
        as_json: for machines.
        hidden: columns that are too wide for people, and follow from others.
    """
    from hudi_fast.cli.render import json_line, show_rows

    if as_json:
        click.echo(json_line(table.to_pylist()))
    else:
        columns = [name for name in table.column_names if name not in hidden]
        show_rows(f"{title} ({table.num_rows})", table.to_pylist(), columns)


def show_answer(done: str, nothing: str, instant: str, values: dict[str, Any], as_json: bool) -> None:
    """Print what a command did.

    Args:
        done: title when there is an instant.
        nothing: title when there is none.
        instant: of what was done; empty for nothing.
        values: the rest by name.
        as_json: for machines.
    """
    from hudi_fast.cli.render import json_line, show_values

    values = {"instant": instant, **values}
    if as_json:
        click.echo(json_line(values))
        return
    if "seconds" in values:
        values["seconds"] = f"{values['seconds']:.2f}"
    show_values(done if instant else nothing, values)
