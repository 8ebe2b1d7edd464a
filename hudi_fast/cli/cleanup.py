"""The commands that remove old files, instants and partitions, and repair a table: ``clean``, ``archive``, ``ttl``,
``repair``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from hudi_fast.cli.shared import (
    confirm,
    dry_run_option,
    json_option,
    option_option,
    options_of,
    path_argument,
    plan_only_option,
    run_pending_option,
    services_of,
    show_answer,
    show_plan,
    show_result,
    yes_option,
)

if TYPE_CHECKING:
    from hudi_fast.services.repairing.findings import RepairPlan, RepairResult

__all__ = ["COMMANDS"]


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
    if sum((dry_run, plan_only, run_pending)) > 1:
        raise click.UsageError("Give at most one of --dry-run, --plan-only and --run-pending.")
    from hudi_fast.cli.progress import progress_line
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
    from hudi_fast.cli.render import json_line, show_values
    from hudi_fast.cli.wording import readable

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


COMMANDS = (clean, archive, ttl, repair)
"""The commands of this module."""


def _show_findings(plan: RepairPlan, as_json: bool) -> None:
    from hudi_fast.reading.inspecting.words import size_text

    summary: dict[str, Any] = {"repairable": len(plan.repairable), "bytes": plan.bytes}
    more = f"{len(plan.repairable)} can be repaired, {size_text(plan.bytes)}." if plan.findings else ""
    show_plan("Findings", plan.to_arrow(), as_json, more, **summary)


def _show_repaired(result: RepairResult, as_json: bool) -> None:
    from hudi_fast.cli.render import json_line, show_values
    from hudi_fast.cli.wording import readable

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
