"""The commands that look at a table: ``info``, ``schema``, ``properties``, ``history``, ``files``, ``explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hudi_fast.cli.shared import json_option, open_table, option_option, options_of, path_argument, show_table

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_fast.table import HudiTable

__all__ = ["COMMANDS"]

_TIME = "TIME"
_LEFT_OUT = ("kind", "base_records")
"""Columns of the metadata table's partitions that only JSON has."""


@click.command(short_help="Show configuration, schema and size of the table.")
@path_argument
@json_option
def info(path: str, as_json: bool) -> None:
    """Show configuration, schema, size, pending services and last services of the table at PATH."""
    from hudi_fast.cli.render import json_line, show_rows, show_values

    table = open_table(path)
    config, schema = _config_values(table), _schema_rows(table.schema)
    stats = table.stats().to_pylist()
    if as_json:
        click.echo(json_line({"path": path, "config": config, "schema": schema, "stats": stats}))
        return
    show_values(f"{table.config.name} ({path})", config)
    show_rows("Columns", schema, ["name", "type", "nullable"])
    _show_stats(stats)


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


@click.command(short_help="List the instants of the timeline.")
@path_argument
@click.option(
    "--begin", metavar=_TIME, help="Only instants requested at or after this time: 20240131120000000, 2024-01-31 ..."
)
@click.option("--end", metavar=_TIME, help="Only instants requested at or before this time.")
@click.option("--archived", is_flag=True, help="Also list archived instants.")
@click.option("--limit", type=click.IntRange(min=0), help="Only the newest N instants.", metavar="N")
@click.option("--plot", "picture", metavar="FILE", help="Plot instants and file sizes to FILE.png, .svg or .pdf.")
@json_option
def history(
    path: str,
    begin: str | None,
    end: str | None,
    archived: bool,
    limit: int | None,
    picture: str | None,
    as_json: bool,
) -> None:
    """List the instants of the timeline of the table at PATH: time, action, duration, rows, files and bytes."""
    opened = open_table(path)
    if picture is not None:
        from hudi_fast.reading.inspecting.plot import require_picture

        require_picture(picture)
    table = opened.history(begin, end, archived)
    table = table.slice(0 if limit is None else max(0, table.num_rows - limit))
    if picture is not None:
        _draw(picture, opened, table, as_json)
        return
    if as_json:
        show_table("History", table, as_json, hidden=[])
    else:
        _show_history(table)


@click.command(short_help="List files and their sizes.")
@path_argument
@click.option(
    "--where", "condition", metavar="CONDITION", help='Only files that may hold matching rows, for example "fare > 10".'
)
@click.option("--by-partition", is_flag=True, help="One line per partition.")
@click.option("--limit", type=click.IntRange(min=0), help="Only the first N lines.", metavar="N")
@json_option
def files(path: str, condition: str | None, by_partition: bool, limit: int | None, as_json: bool) -> None:
    """List the file groups in the newest state of the table at PATH: sizes, log files, pending services."""
    if by_partition and condition is not None:
        raise click.UsageError("Give either --where or --by-partition.")
    opened = open_table(path)
    if by_partition:
        table = opened.partitions()
    else:
        table = opened.files(None if condition is None else condition)
    shown = table if limit is None else table.slice(0, limit)
    hidden = ["base_file"] if by_partition else ["base_file", "base_bytes"]
    if not any(table.column("log_files").to_pylist()):
        hidden += ["log_files", "log_bytes", "log_ratio"]
    show_table("Partitions" if by_partition else "Files", shown, as_json, hidden=hidden)


@click.command(short_help="Show how a condition skips files.")
@path_argument
@click.option("--where", "condition", metavar="CONDITION", required=True, help="For example \"city = 'Oslo'\".")
@json_option
def explain(path: str, condition: str, as_json: bool) -> None:
    """Show how a condition skips files of the table at PATH: the indexes used, and the files read."""
    opened = open_table(path)
    show_table("Steps", opened.explain(condition), as_json, hidden=[])


COMMANDS = (info, schema, properties, history, files, explain)
"""The commands of this module."""


def _show_history(table: pa.Table) -> None:
    """Print instants; one column counts inserted (+), updated (~) and deleted (-) rows, the last holds details."""
    from hudi_fast.cli.render import readable, show_rows

    rows = []
    for row in table.to_pylist():
        shown = readable(row)
        signs = (("+", "inserts"), ("~", "updates"), ("-", "deletes"))
        counted = " ".join(f"{sign}{shown[name]}" for sign, name in signs if row[name])
        rows.append({**shown, "took": shown["duration"], "rows": counted, "details": _details(row)})
    right = ["took", "rows", "files", "bytes"]
    columns = ["instant", "action", "operation", *right, "details"] if rows else []
    show_rows(f"History ({table.num_rows:,})", rows, columns, right=right, unbroken=["instant"])


def _details(row: dict[str, Any]) -> str:
    """The state of a pending instant, and the effects of an action other than written rows."""
    from hudi_fast.cli.render import counted

    read, written, deleted = row["groups_read"], row["groups_written"], row["files_deleted"]
    words = [
        "" if row["state"] == "COMPLETED" else row["state"],
        "" if read is None else counted(read, "file group") + ("" if written is None else f" into {written:,}"),
        "" if deleted is None else counted(deleted, "file") + " deleted",
        f"rolled back {', '.join(row['rolled_back'])}" if row["rolled_back"] else "",
        row["comment"] or "",
        row["note"] or "",
        "archived" if row["archived"] else "",
    ]
    return "; ".join(filter(None, words))


def _draw(picture: str, table: HudiTable, shown: pa.Table, as_json: bool) -> None:
    from hudi_fast.cli.progress import progress_line
    from hudi_fast.cli.render import json_line
    from hudi_fast.reading.inspecting.plot import draw_history

    with progress_line(f"Drawing {picture}"):
        draw_history(picture, table.config.name, shown, table.files(), table.config.timezone)
    if as_json:
        click.echo(json_line({"instants": shown.num_rows, "output": picture}))
    else:
        click.echo(f"{shown.num_rows} instants drawn to {picture}")


def _config_values(table: HudiTable) -> dict[str, Any]:
    config = table.config
    names = ("record_key_fields", "partition_fields", "ordering_fields")
    lists = {name: list(getattr(config, name)) for name in names}
    return {
        "name": config.name,
        "database": config.database,
        "table_type": table.table_type,
        "version": table.version,
        **lists,
        "key_generator": config.key_generator_class or config.key_generator,
        "merge_mode": config.merge_mode,
        "hive_style": config.hive_style,
        "url_encode": config.url_encode,
        "populate_meta_fields": config.populate_meta_fields,
        "timezone": config.timezone,
        "metadata_partitions": list(config.metadata_partitions),
    }


def _schema_rows(schema: pa.Schema) -> list[dict[str, Any]]:
    return [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in schema]


def _show_stats(stats: list[dict[str, Any]]) -> None:
    from hudi_fast.cli.render import numeric_columns, readable, show_rows, show_values

    values = dict(stats[0])
    indexes = values.pop("metadata_table")
    show_values("Size and services", readable(values))
    if indexes:
        columns = [
            name for name in indexes[0] if name not in _LEFT_OUT and any(one[name] is not None for one in indexes)
        ]
        show_rows("Metadata table", map(readable, indexes), columns, right=numeric_columns(indexes, columns))
