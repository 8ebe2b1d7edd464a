"""The commands for indexes, table version and pending services: ``index``, ``validate``, ``upgrade``, ``services``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from hudi_fast.cli.shared import (
    dry_run_option,
    json_option,
    open_table,
    option_option,
    options_of,
    path_argument,
    plan_only_option,
    run_pending_option,
    services_of,
    show_answer,
    show_plan,
    show_result,
    show_table,
)
from hudi_fast.config.option_names import INDEX_KINDS

__all__ = ["COMMANDS"]


@click.command(short_help="List, build and drop indexes.")
@path_argument
@click.argument("kind", required=False, type=click.Choice(INDEX_KINDS, case_sensitive=False))
@click.option(
    "--columns", metavar="A,B,...", help="Columns of column_stats; column of a secondary or expression index."
)
@click.option("--name", help="Name of a secondary or expression index; default: the name of its column.")
@click.option("--function", help="Function of an expression index, such as lower, year, from_unixtime.")
@click.option(
    "--argument", "arguments", multiple=True, metavar="NAME=VALUE", help="Argument of the function; repeatable."
)
@click.option("--drop", metavar="NAME", help="Drop this index.")
@plan_only_option
@run_pending_option
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
    """List the indexes of the table at PATH, build an index of a KIND, or drop an index.

    Writers can continue while an index is built. Required indexes are built too, and a missing metadata table is
    created. --drop takes the metadata table partition of an index (record_index), or the name of a secondary or
    expression index.
    """
    if sum((kind is not None, drop is not None, run_pending)) > 1 or (plan_only and kind is None):
        raise click.UsageError("Give only one of KIND, --drop and --run-pending; --plan-only needs a KIND.")
    services, options = open_table(path).services, options_of(pairs)
    if drop is not None:
        _show_dropped(services.drop_index(drop, options), as_json)
    elif run_pending:
        _run_pending(services, path, options, as_json)
    elif kind is None:
        show_table("Indexes", services.indexes(), as_json, hidden=["kind"])
    else:
        arguments_of_index = {
            "columns": [] if columns is None else [each.strip() for each in columns.split(",")],
            "name": name,
            "function": function,
            "function_options": options_of(arguments, "--argument"),
            "options": options,
        }
        _build(services, path, kind.lower(), arguments_of_index, plan_only, as_json)


@click.command(short_help="Compare the metadata table with the table.")
@path_argument
@click.option(
    "--partition", "partitions", multiple=True, metavar="NAME", help="Only this metadata table partition; repeatable."
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="Maximum number of differences to list per partition.",
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

    Writes nothing. The exit code is 1 if there are differences.
    """
    from hudi_fast.cli.progress import progress_line
    from hudi_fast.cli.render import json_line, show_rows
    from hudi_fast.cli.wording import numeric_columns, readable

    services, options = open_table(path).services, options_of(pairs)
    with progress_line(f"Validating {path}"):
        result = services.validate(partitions, limit, options)
    summary, differences = result.summary.to_pylist(), result.differences.to_pylist()
    if as_json:
        click.echo(json_line({"ok": result.ok, "summary": summary, "differences": differences}))
    else:
        title, columns = "Metadata table" if summary else "The table has no metadata table", result.summary.column_names
        show_rows(title, map(readable, summary), columns, right=numeric_columns(summary, columns))
        if differences:
            show_rows(f"Differences ({len(differences)})", differences, result.differences.column_names)
    if not result.ok:
        context.exit(1)


@click.command(short_help="Upgrade or downgrade the table version.")
@path_argument
@click.argument("version", type=click.IntRange(min=1))
@dry_run_option
@option_option
@json_option
def upgrade(path: str, version: int, dry_run: bool, pairs: tuple[str, ...], as_json: bool) -> None:
    """Change the table at PATH to a higher or lower table VERSION; rows and history are kept.

    Failed writes are rolled back and log files are merged first. Stop all writers on other machines before.
    """
    from hudi_fast.cli.progress import progress_line

    services, options = services_of(path), options_of(pairs)
    if dry_run:
        _show_steps(services.plan_upgrade(version, options), as_json)
        return
    with progress_line(f"Changing the version of {path} to {version}"):
        result = services.upgrade(version, options)
    values = {"before": result.before, "after": result.after, "steps": list(result.steps), "seconds": result.seconds}
    _show_upgraded(values, as_json)


@click.command("services", short_help="List or execute pending table services.")
@path_argument
@click.option("--run", "execute", is_flag=True, help="Execute pending services, oldest first; plan nothing new.")
@option_option
@json_option
def services_(path: str, execute: bool, pairs: tuple[str, ...], as_json: bool) -> None:
    """List the pending table services on the timeline of the table at PATH, or execute them."""
    from hudi_fast.cli.progress import progress_line

    services, options = services_of(path), options_of(pairs)
    if not execute:
        show_table("Pending services", services.pending(options), as_json, hidden=[])
        return
    with progress_line(f"Executing pending services of {path}"):
        done = services.run_pending(options)
    _show_executed(done, as_json)


COMMANDS = (index, validate, upgrade, services_)
"""The commands of this module."""


def _build(services: Any, path: str, kind: str, arguments: dict[str, Any], plan_only: bool, as_json: bool) -> None:
    from hudi_fast.cli.progress import progress_line

    if plan_only:
        planned = services.schedule_index(kind, **arguments)
        values = {"partitions": [] if planned is None else list(planned.partitions)}
        show_answer("Planned", "The index exists", planned.instant if planned else "", values, as_json)
        return
    with progress_line(f"Building {kind} of {path}"):
        result = services.index(kind, **arguments)
    _show_built(result, as_json)


def _run_pending(services: Any, path: str, options: dict[str, str], as_json: bool) -> None:
    from hudi_fast.cli.progress import progress_line

    pending = services.pending_indexes()
    for planned in pending:
        with progress_line(f"Building {planned.partition} of {path}"):
            result = services.index(options=options, plan=planned)
        _show_built(result, as_json)
    if not pending:
        show_answer("Built", "No pending index", "", {"partitions": []}, as_json)


def _show_built(result: Any, as_json: bool) -> None:
    values = {
        "partition": result.partition,
        "partitions": list(result.partitions),
        "records": result.records,
        "file_groups": result.file_groups,
        "seconds": result.seconds,
    }
    done = "Built" if result.partitions else "The index exists"
    show_answer(done, done, result.instant, values, as_json)


def _show_dropped(partitions: tuple[str, ...], as_json: bool) -> None:
    from hudi_fast.cli.render import json_line, show_values

    values = {"dropped": list(partitions)}
    if as_json:
        click.echo(json_line(values))
    else:
        show_values("Dropped", values)


def _show_steps(plan: Any, as_json: bool) -> None:
    import pyarrow as pa

    steps = pa.table({"step": range(1, len(plan.steps) + 1), "what": pa.array(plan.steps, pa.string())})
    title = f"Steps from version {plan.before} to {plan.after}"
    show_plan(title, steps, as_json, before=plan.before, after=plan.after)


def _show_upgraded(values: dict[str, Any], as_json: bool) -> None:
    from hudi_fast.cli.render import json_line, show_rows, show_values
    from hudi_fast.cli.wording import readable

    if as_json:
        click.echo(json_line(values))
    elif values["before"] == values["after"]:
        show_values(f"The table already has version {values['after']}", {})
    else:
        steps = [{"step": number, "what": what} for number, what in enumerate(values["steps"], 1)]
        show_rows(f"Steps from version {values['before']} to {values['after']}", steps, ["step", "what"])
        show_values("Done", readable({name: value for name, value in values.items() if name != "steps"}))


def _show_executed(done: list[Any], as_json: bool) -> None:
    from hudi_fast.cli.render import json_line

    if as_json:
        for one in done:
            click.echo(json_line({"service": _service_of(one), **asdict(one)}))
        return
    for one in done:
        show_result(f"Done: {_service_of(one)}", f"Nothing to do: {_service_of(one)}", one, False)
    if not done:
        click.echo("No pending service to execute.")


def _service_of(result: Any) -> str:
    return str(getattr(result, "operation", "") or type(result).__name__.removesuffix("Result").lower())
