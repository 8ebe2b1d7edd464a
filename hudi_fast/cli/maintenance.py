"""The commands that keep a table fast and small: indexes, files, instants, pending services.

The commands for indexes, table version and pending services: ``index``, ``validate``, ``upgrade``, ``services``.

The commands that remove old files, instants and partitions, and repair a table: ``clean``, ``archive``, ``ttl``,
``repair``.

The commands that rewrite files: ``compact``, ``cluster``.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from hudi_fast.cli.shared import (
    confirm,
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
    yes_option,
)
from hudi_fast.config.option_names import INDEX_KINDS

if TYPE_CHECKING:
    from hudi_fast.services.compact_plan import ScheduledCompaction
    from hudi_fast.services.repairing.findings import RepairPlan, RepairResult

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
    from hudi_fast.cli.render import json_line, numeric_columns, readable, show_rows

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
    from hudi_fast.cli.render import json_line, readable, show_rows, show_values

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


@click.command(short_help="Delete old file slices.")
@path_argument
@dry_run_option
@plan_only_option
@run_pending_option
@option_option
@json_option
def clean(path: str, dry_run: bool, plan_only: bool, run_pending: bool, pairs: tuple[str, ...], as_json: bool) -> None:
    """Delete files of the table at PATH that are not part of retained file slices.

    Options such as -o hoodie.clean.commits.retained=10 determine how much history stays readable. Pending cleans are
    executed first, then a new one.
    """
    from hudi_fast.cli.progress import progress_line

    if sum((dry_run, plan_only, run_pending)) > 1:
        raise click.UsageError("Give at most one of --dry-run, --plan-only and --run-pending.")
    from hudi_fast.reading.inspecting.words import size_text

    options, services = options_of(pairs), services_of(path)
    if dry_run or plan_only:
        planned = services.plan_clean(options) if dry_run else services.schedule_clean(options)
        sizes: dict[str, Any] = {"files": planned.files if planned else 0, "bytes": planned.bytes if planned else 0}
        if dry_run and planned is not None:
            more = f"{size_text(planned.bytes)} in total."
            show_plan("Would be deleted", planned.to_arrow(), as_json, more, **sizes)
            return
        show_answer("Planned", "Nothing to clean", planned.instant if planned else "", sizes, as_json)
        return
    with progress_line(f"Cleaning {path}"):
        result = services.clean(options, pending_only=run_pending)
    show_result("Cleaned", "Nothing to clean", result, as_json)


@click.command(short_help="Move old instants to the archive.")
@path_argument
@dry_run_option
@option_option
@json_option
def archive(path: str, dry_run: bool, pairs: tuple[str, ...], as_json: bool) -> None:
    """Move old instants of the table at PATH from the active timeline to the archived timeline.

    Archiving starts above hoodie.keep.max.commits (default 30) and keeps hoodie.keep.min.commits (default 20).
    """
    from hudi_fast.cli.progress import progress_line
    from hudi_fast.cli.render import json_line, readable, show_values

    options, services = options_of(pairs), services_of(path)
    if dry_run:
        plan = services.plan_archive(options)
        limits = (
            f"{plan.active:,} commits are active; archiving starts above {plan.keep_max:,} and keeps {plan.keep_min:,}."
        )
        note = f"Newer instants are blocked: {plan.blocked_by.rstrip('.')}." if plan.blocked_by else limits
        show_plan("Would be archived", plan.to_arrow(), as_json, note, blocked_by=plan.blocked_by)
        return
    with progress_line(f"Archiving the timeline of {path}"):
        result = services.archive(options)
    values = asdict(result)
    if as_json:
        click.echo(json_line(values))
    elif result.instants:
        show_values("Archived", readable({**values, "instants": len(result.instants)}))
    else:
        blocked = {"blocked_by": result.blocked_by} if result.blocked_by else {}
        show_values("Nothing to archive", readable({"active": result.active, **blocked}))


@click.command(short_help="Delete expired partitions.")
@path_argument
@click.option("--days", type=click.IntRange(min=1), help="Days to keep a partition.")
@dry_run_option
@option_option
@json_option
def ttl(path: str, days: int | None, dry_run: bool, pairs: tuple[str, ...], as_json: bool) -> None:
    """Delete partitions of the table at PATH whose newest file slice began more than --days days ago.

    -o hoodie.partition.ttl.management.strategy.type=KEEP_BY_CREATION_TIME counts from the creation of the partition.
    Files stay until a clean removes them.
    """
    from hudi_fast.cli.progress import progress_line

    options, services = options_of(pairs), services_of(path)
    if days is not None:
        options["hoodie.partition.ttl.strategy.days.retain"] = str(days)
    if dry_run:
        show_plan("Expired partitions", services.plan_expire_partitions(options).to_arrow(), as_json)
        return
    with progress_line(f"Looking for expired partitions of {path}"):
        result = services.expire_partitions(options)
    show_result("Deleted", "No partition has expired", result, as_json)


@click.command(short_help="Find and remove leftovers of failed writes and services.")
@path_argument
@dry_run_option
@yes_option
@option_option
@json_option
def repair(path: str, dry_run: bool, yes: bool, pairs: tuple[str, ...], as_json: bool) -> None:
    """Find and remove leftovers in the table at PATH that no query needs.

    These are: files of no commit, files that a clean could not delete, failed writes, dangling instants, leftover
    markers, temporary files and heartbeats. Findings that cannot be repaired safely are listed with advice. `hudi-fast
    validate` checks the metadata table.
    """
    from hudi_fast.cli.progress import progress_line

    options, services = options_of(pairs), services_of(path)
    with progress_line(f"Scanning {path}"):
        plan = services.plan_repair(options)
    if dry_run:
        _show_findings(plan, as_json)
        return
    if plan.repairable:
        if not as_json and not yes:
            _show_findings(plan, False)
        confirm(f"Repair {len(plan.repairable)} of {len(plan.findings)} findings?", yes)
    with progress_line(f"Repairing {path}"):
        result = services.repair(options, plan)
    _show_repaired(result, as_json)


def _show_findings(plan: RepairPlan, as_json: bool) -> None:
    from hudi_fast.reading.inspecting.words import size_text

    summary: dict[str, Any] = {"repairable": len(plan.repairable), "bytes": plan.bytes}
    more = f"{len(plan.repairable)} can be repaired, {size_text(plan.bytes)}." if plan.findings else ""
    show_plan("Findings", plan.to_arrow(), as_json, more, **summary)


def _show_repaired(result: RepairResult, as_json: bool) -> None:
    from hudi_fast.cli.render import json_line, readable, show_values

    values = {
        "repaired": len(result.repaired),
        "left": len(result.left),
        "files_deleted": result.files_deleted,
        "bytes_deleted": result.bytes_deleted,
        "rolled_back": list(result.rolled_back),
        "seconds": result.seconds,
    }
    if as_json:
        found = {"repaired": [asdict(one) for one in result.repaired], "left": [asdict(one) for one in result.left]}
        click.echo(json_line({"instant": result.instant, **values, **found}))
        return
    show_values("Repaired" if result.repaired else "Nothing to repair", readable(values) if result.repaired else {})
    if result.left:
        show_plan("Needs manual repair", result.to_arrow(), False, hidden=("repairable",))


@click.command(short_help="Merge log files into base files.")
@path_argument
@click.option(
    "--logs", is_flag=True, help="Log compaction: merge the log files of each file slice, without rewriting base files."
)
@dry_run_option
@plan_only_option
@run_pending_option
@option_option
@json_option
def compact(
    path: str, logs: bool, dry_run: bool, plan_only: bool, run_pending: bool, pairs: tuple[str, ...], as_json: bool
) -> None:
    """Merge the log files of the MERGE_ON_READ table at PATH into its base files.

    Pending compactions are executed first. A new one is planned immediately, unless an option such as
    -o hoodie.compact.inline.max.delta.commits=5 sets when it is due.
    """
    from hudi_fast.cli.progress import progress_line

    if sum((dry_run, plan_only, run_pending)) > 1:
        raise click.UsageError("Give at most one of --dry-run, --plan-only and --run-pending.")
    if logs and run_pending:
        raise click.UsageError("--logs cannot be combined with --run-pending; `services --run` executes all plans.")

    options, services = options_of(pairs), services_of(path)
    if dry_run or plan_only:
        verb = f"{'plan' if dry_run else 'schedule'}_{'compact_logs' if logs else 'compact'}"
        planned: ScheduledCompaction | None = getattr(services, verb)(options)
        groups = () if planned is None else planned.plan.operations
        sizes: dict[str, Any] = {"file_groups": len(groups), "log_files": sum(len(one.log_files) for one in groups)}
        if dry_run and planned is not None:
            show_plan("Would be merged", planned.to_arrow(), as_json, hidden=("base_file",), **sizes)
            return
        show_answer("Planned", "Nothing to compact", planned.instant if planned else "", sizes, as_json)
        return
    with progress_line(f"Compacting {path}"):
        result = services.compact_logs(options) if logs else services.compact(options, pending_only=run_pending)
    show_result("Compacted", "Nothing to compact", result, as_json)


@click.command(short_help="Rewrite small files into larger ones.")
@path_argument
@dry_run_option
@plan_only_option
@run_pending_option
@option_option
@json_option
def cluster(
    path: str, dry_run: bool, plan_only: bool, run_pending: bool, pairs: tuple[str, ...], as_json: bool
) -> None:
    """Rewrite small files of the table at PATH into larger ones, optionally sorted.

    To sort, give for example -o hoodie.clustering.plan.strategy.sort.columns=city,ts. Pending clusterings are executed
    first, then a new one.
    """
    from hudi_fast.cli.progress import progress_line

    if sum((dry_run, plan_only, run_pending)) > 1:
        raise click.UsageError("Give at most one of --dry-run, --plan-only and --run-pending.")

    options, services = options_of(pairs), services_of(path)
    if dry_run or plan_only:
        planned = services.plan_cluster(options) if dry_run else services.schedule_cluster(options)
        groups = 0 if planned is None else planned.file_groups
        if dry_run and planned is not None:
            show_plan("Would be rewritten", planned.to_arrow(), as_json, hidden=("base_file",), file_groups=groups)
            return
        show_answer(
            "Planned", "Nothing to cluster", planned.instant if planned else "", {"file_groups": groups}, as_json
        )
        return
    with progress_line(f"Clustering {path}"):
        result = services.cluster(options, pending_only=run_pending)
    show_result("Clustered", "Nothing to cluster", result, as_json)


COMMANDS = (compact, cluster, clean, archive, ttl, repair, index, validate, upgrade, services_)
"""The commands of this module."""
