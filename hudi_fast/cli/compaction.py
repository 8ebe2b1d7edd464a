"""The commands that rewrite files: ``compact``, ``cluster``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hudi_fast.cli.shared import (
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
)

if TYPE_CHECKING:
    from hudi_fast.services.compaction.compact_plan import ScheduledCompaction

__all__ = ["COMMANDS"]


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
    if sum((dry_run, plan_only, run_pending)) > 1:
        raise click.UsageError("Give at most one of --dry-run, --plan-only and --run-pending.")
    if logs and run_pending:
        raise click.UsageError("--logs cannot be combined with --run-pending; `services --run` executes all plans.")
    from hudi_fast.cli.progress import progress_line

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
    if sum((dry_run, plan_only, run_pending)) > 1:
        raise click.UsageError("Give at most one of --dry-run, --plan-only and --run-pending.")
    from hudi_fast.cli.progress import progress_line

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


COMMANDS = (compact, cluster)
"""The commands of this module."""
