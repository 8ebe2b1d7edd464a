"""The commands for columns and properties of a table: ``schema``, ``properties``."""

from __future__ import annotations

import click

from hudi_fast.cli.shared import json_option, open_table, option_option, options_of, path_argument, show_table

__all__ = ["COMMANDS"]


@click.command(short_help="Show columns and schema changes.")
@path_argument
@click.option("--ids", is_flag=True, help="Show all versions of the schema, with column ids.")
@json_option
def schema(path: str, ids: bool, as_json: bool) -> None:
    """Show the columns of the table at PATH, and the changes of every ALTER and every write with new columns."""
    from hudi_fast.cli.render import json_line, show_rows

    table = open_table(path)
    if ids:
        show_table("Versions", table.schema_history(), as_json, hidden=[])
        return
    columns = [{"name": one.name, "type": str(one.type), "nullable": one.nullable} for one in table.schema]
    changes = table.schema_changes()
    if as_json:
        click.echo(json_line({"path": path, "schema": columns, "changes": changes.to_pylist()}))
        return
    show_rows("Columns", columns, ["name", "type", "nullable"])
    if changes.num_rows:
        show_table("Changes", changes, as_json, hidden=[])


@click.command(short_help="Show, set and remove properties.")
@path_argument
@click.argument("changes", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--unset", multiple=True, metavar="KEY", help="Remove this property; repeatable.")
@option_option
@json_option
def properties(
    path: str, changes: tuple[str, ...], unset: tuple[str, ...], pairs: tuple[str, ...], as_json: bool
) -> None:
    """Show the properties of the table at PATH, or set properties of your own, such as its owner."""
    from hudi_fast.cli.render import json_line, show_rows

    table = open_table(path)
    if changes or unset:
        wanted: dict[str, str | None] = {**options_of(changes, "KEY=VALUE"), **dict.fromkeys(unset)}
        found = table.set_properties(wanted, options=options_of(pairs))
    else:
        found = dict(table.config.raw)
    if as_json:
        click.echo(json_line({"path": path, "properties": found}))
    else:
        show_rows("Properties", [{"key": key, "value": value} for key, value in found.items()], ["key", "value"])


COMMANDS = (schema, properties)
"""The commands of this module."""
