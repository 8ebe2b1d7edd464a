"""The commands that keep a table in shape: ``compact``, ``index``, ``validate``."""

from __future__ import annotations

from typing import Any

import click

from hudi_fast.cli.shared import (
    json_option,
    open_table,
    option_option,
    options_of,
    path_argument,
    show_answer,
    show_table,
)
from hudi_fast.config.option_names import INDEX_KINDS

__all__ = ["COMMANDS"]


@click.command()
@path_argument
@click.option("--plan-only", is_flag=True, help="Put a plan on the timeline for somebody else to carry out.")
@click.option("--run-pending", is_flag=True, help="Carry out what was planned, and plan nothing new.")
@option_option
@json_option
def compact(path: str, plan_only: bool, run_pending: bool, pairs: tuple[str, ...], as_json: bool) -> None:
    """Merge the log files of the MERGE_ON_READ table at PATH into its base files.

    Compactions that were planned are carried out first, then a new one. It is due now, unless an option such as
    -o hoodie.compact.inline.max.delta.commits=5 says when it is.
    """
    if plan_only and run_pending:
        raise click.UsageError("Give either --plan-only or --run-pending.")
    from hudi_fast.cli.progress import under_way

    options, services = options_of(pairs), open_table(path).services
    if plan_only:
        planned = services.plan_compact(options)
        groups = [] if planned is None else planned.plan.operations
        sizes = {"file_groups": len(groups), "log_files": sum(len(one.log_files) for one in groups)}
        show_answer("Planned", "Nothing to compact", planned.instant if planned else "", sizes, as_json)
        return
    with under_way(f"Compacting {path}"):
        result = services.compact(options, pending_only=run_pending)
    names = ("file_groups", "log_files", "rows", "updates", "inserts", "deletes", "files_written", "bytes_written")
    values = {**{name: getattr(result, name) for name in names}, "seconds": result.seconds}
    show_answer("Compacted", "Nothing to compact", result.instant, values, as_json)


@click.command()
@path_argument
@click.argument("kind", required=False, type=click.Choice(INDEX_KINDS, case_sensitive=False))
@click.option("--columns", metavar="A,B,...", help="Of column_stats; the one of a secondary or expression index.")
@click.option("--name", help="Of a secondary or expression index; default: its column's.")
@click.option("--function", help="Of an expression index, such as lower, year, from_unixtime.")
@click.option("--argument", "arguments", multiple=True, metavar="NAME=VALUE", help="Of the function; repeatable.")
@click.option("--drop", metavar="NAME", help="Take this index away.")
@click.option("--plan-only", is_flag=True, help="Put a plan on the timeline for somebody else to carry out.")
@click.option("--run-pending", is_flag=True, help="Carry out what was planned, and plan nothing new.")
@option_option
@json_option
def index(
    path: str,
    kind: str | None,
    columns: str | None,
    name: str | None,
    function: str | None,
    arguments: tuple[str, ...],
    drop: str | None,
    plan_only: bool,
    run_pending: bool,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """List the indexes of the table at PATH, or build the one of that KIND, while the table goes on being written to.

    An index that rests on another one brings that along; a table without a metadata table gets one. With --drop an
    index is taken away: by the name of its partition (record_index), or by that of a secondary or expression index.
    """
    if sum((kind is not None, drop is not None, run_pending)) > 1 or (plan_only and kind is None):
        raise click.UsageError("Give a KIND (and --plan-only, if it is not to be built now), --drop or --run-pending.")
    services, options = open_table(path).services, options_of(pairs)
    if drop is not None:
        _show_dropped(services.drop_index(drop, options), as_json)
    elif run_pending:
        _run_pending(services, path, options, as_json)
    elif kind is None:
        show_table("Indexes", services.indexes(), as_json, hidden=[])
    else:
        words = {
            "columns": [] if columns is None else [each.strip() for each in columns.split(",")],
            "name": name,
            "function": function,
            "function_options": options_of(arguments, "--argument"),
            "options": options,
        }
        _build(services, path, kind.lower(), words, plan_only, as_json)


@click.command()
@path_argument
@click.option("--partition", "partitions", multiple=True, metavar="NAME", help="Only this one; repeatable.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=1000, show_default=True, help="Differences to list of each."
)
@option_option
@json_option
@click.pass_context
def validate(
    context: click.Context,
    path: str,
    partitions: tuple[str, ...],
    limit: int,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compare the metadata table of the table at PATH with its files and rows.

    Exit code 1 when something is not as it should be. Nothing is written.
    """
    from hudi_fast.cli.progress import under_way
    from hudi_fast.cli.render import json_line, show_rows

    services, options = open_table(path).services, options_of(pairs)
    with under_way(f"Validating {path}"):
        result = services.validate(partitions, limit, options)
    summary, differences = result.summary.to_pylist(), result.differences.to_pylist()
    if as_json:
        click.echo(json_line({"ok": result.ok, "summary": summary, "differences": differences}))
    else:
        for row in summary:
            row["seconds"] = None if row["seconds"] is None else f"{row['seconds']:.2f}"
        show_rows("Metadata table" if summary else "There is no metadata table", summary, result.summary.column_names)
        if differences:
            show_rows(f"Differences ({len(differences)})", differences, result.differences.column_names)
    if not result.ok:
        context.exit(1)


COMMANDS = (compact, index, validate)
"""The commands of this module."""


def _build(services: Any, path: str, kind: str, words: dict[str, Any], plan_only: bool, as_json: bool) -> None:
    from hudi_fast.cli.progress import under_way

    if plan_only:
        planned = services.plan_index(kind, **words)
        values = {"partitions": [] if planned is None else list(planned.partitions)}
        show_answer("Planned", "The index is there", planned.instant if planned else "", values, as_json)
        return
    with under_way(f"Building {kind} of {path}"):
        result = services.index(kind, **words)
    _show_built(result, as_json)


def _run_pending(services: Any, path: str, options: dict[str, str], as_json: bool) -> None:
    from hudi_fast.cli.progress import under_way

    waiting = services.pending_indexes()
    for planned in waiting:
        with under_way(f"Building {planned.partition} of {path}"):
            result = services.index(options=options, plan=planned)
        _show_built(result, as_json)
    if not waiting:
        show_answer("Built", "Nothing is planned", "", {"partitions": []}, as_json)


def _show_built(result: Any, as_json: bool) -> None:
    values = {
        "partition": result.partition,
        "partitions": list(result.partitions),
        "records": result.records,
        "file_groups": result.file_groups,
        "seconds": result.seconds,
    }
    done = "Built" if result.partitions else "The index is there"
    show_answer(done, done, result.instant, values, as_json)


def _show_dropped(partitions: tuple[str, ...], as_json: bool) -> None:
    from hudi_fast.cli.render import json_line, show_values

    values = {"dropped": list(partitions)}
    if as_json:
        click.echo(json_line(values))
    else:
        show_values("Dropped", values)
