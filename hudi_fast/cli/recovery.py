"""The commands that undo writes: ``rollback``, ``savepoint``, ``restore``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hudi_fast.cli.shared import (
    confirm,
    dry_run_option,
    instant_text,
    json_option,
    open_table,
    option_option,
    options_of,
    path_argument,
    show_answer,
    show_plan,
    show_result,
    show_table,
    yes_option,
)

if TYPE_CHECKING:
    from hudi_fast.services.undoing import PlannedRestore, PlannedRollback

__all__ = ["COMMANDS"]


@click.command(short_help="Roll back a write, or all failed writes.")
@path_argument
@click.argument("instant", required=False, callback=lambda _context, _argument, text: _instant_or_none(text))
@dry_run_option
@yes_option
@option_option
@json_option
def rollback(path: str, instant: str | None, dry_run: bool, yes: bool, pairs: tuple[str, ...], as_json: bool) -> None:
    """Roll back an INSTANT of the table at PATH, or all failed writes.

    Of completed writes only the newest can be rolled back, after confirmation.
    """
    from hudi_fast.cli.progress import progress_line

    opened, options = open_table(path), options_of(pairs)
    plan = opened.services.plan_rollback(instant, options)
    if dry_run:
        _show_undone(plan, as_json)
        return
    completed = instant is not None and "COMPLETED" in opened.history(instant, instant).column("state").to_pylist()
    if completed:
        if not as_json and not yes:
            _show_undone(plan, False)
        confirm(f"The write {instant} is complete; its rows will be removed. Roll it back?", yes)
    with progress_line(f"Rolling back on {path}"):
        result = opened.services.rollback(instant, options, plan=plan)
    done = bool(result.rolled_back)
    show_result(*("Rolled back",) * 2 if done else ("Nothing to roll back",) * 2, result, as_json)


@click.command(short_help="Create, list or delete savepoints.")
@path_argument
@click.argument("instant", required=False, callback=lambda _context, _argument, text: _instant_or_none(text))
@click.option("--user", default="", metavar="NAME", help="Creator of the savepoint.")
@click.option("--comment", default="", metavar="TEXT", help="Comment of the savepoint.")
@click.option("--delete", is_flag=True, help="Delete the savepoint of INSTANT.")
@click.option("--list", "listing", is_flag=True, help="List the savepoints.")
@option_option
@json_option
def savepoint(
    path: str,
    instant: str | None,
    user: str,
    comment: str,
    delete: bool,
    listing: bool,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Create a savepoint of a commit of the table at PATH: its files are kept and it can be restored.

    Without INSTANT the savepoint is of the newest commit.
    """
    if delete + listing + bool(user or comment) > 1 or (listing and instant) or (delete and not instant):
        raise click.UsageError(
            "Give an optional INSTANT with --user and --comment, an INSTANT with --delete, or only --list."
        )
    services, options = open_table(path).services, options_of(pairs)
    if listing:
        show_table("Savepoints", services.savepoints(), as_json, hidden=[])
    elif delete and instant is not None:
        services.delete_savepoint(instant, options)
        show_answer("Savepoint deleted", "", instant, {}, as_json)
    else:
        made = services.savepoint(instant, user, comment, options)
        show_result("Savepoint created", "Savepoint created", made, as_json)


@click.command(short_help="Restore the table to a savepoint.")
@path_argument
@click.argument("savepoint", callback=lambda _context, _argument, text: instant_text(text))
@dry_run_option
@yes_option
@option_option
@json_option
def restore(path: str, savepoint: str, dry_run: bool, yes: bool, pairs: tuple[str, ...], as_json: bool) -> None:
    """Restore the table at PATH to a SAVEPOINT, after confirmation: all later instants are undone."""
    from hudi_fast.cli.progress import progress_line
    from hudi_fast.cli.render import counted

    services, options = open_table(path).services, options_of(pairs)
    plan = services.plan_restore(savepoint, options)
    if dry_run:
        _show_undone(plan, as_json)
        return
    if not as_json and not yes:
        _show_undone(plan, False)
    undone = counted(len(plan.instants), "instant")
    confirm(f"{undone} after {savepoint} will be undone and their rows removed. Restore?", yes)
    with progress_line(f"Restoring {path}"):
        result = services.restore(savepoint, options, plan=plan)
    show_result("Restored", "The table is already in the state of the savepoint", result, as_json)


COMMANDS = (rollback, savepoint, restore)
"""The commands of this module."""


def _instant_or_none(text: str | None) -> str | None:
    return None if text is None else instant_text(text)


def _show_undone(plan: PlannedRollback | PlannedRestore, as_json: bool) -> None:
    summary: dict[str, Any] = {"instants": plan.instants, "rebuilt": plan.rebuilt}
    times = [one if isinstance(one, str) else f"{one[0]} ({one[1]})" for one in plan.instants]
    undone = f"Undone instants: {', '.join(times)}." if times else "No instant is undone."
    rebuilt = f" Rebuilt in the metadata table: {', '.join(plan.rebuilt)}." if plan.rebuilt else ""
    show_plan("Affected files", plan.to_arrow(), as_json, undone + rebuilt, **summary)
