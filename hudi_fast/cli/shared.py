"""Shared parts of the commands: arguments, options, opening the table, confirmation, and printing of results.

Keeps pandas out of commands: Arrow imports it with its first array of Python values, which takes long.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence
from dataclasses import field, fields
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hudi_fast.values import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_fast.table import HudiTable
    from hudi_fast.table.services import TableServices

__all__ = [
    "Common",
    "allow_pandas",
    "confirm",
    "dry_run_option",
    "instant_text",
    "json_option",
    "nearby_table",
    "open_table",
    "option_option",
    "options_of",
    "path_argument",
    "plan_only_option",
    "refuse_pandas",
    "run_pending_option",
    "services_of",
    "show_answer",
    "show_plan",
    "show_result",
    "show_table",
    "storage_option",
    "storage_options",
    "traceback_option",
    "yes_option",
]

_SHOWN_PLAN_ROWS = 50
_UNBROKEN = ("instant", "completion")
"""Columns whose values are not broken into lines."""

_ALWAYS_SET = ("operation", "seconds")
"""Fields of a result that are set even if nothing was done."""


@dataclass
class Common:
    """What the options of every command say; they may stand before and after its name.

    Attributes:
        storage: the texts of ``--storage-option``.
        traceback: whether an error shows the calls that led to it.
    """

    storage: list[str] = field(default_factory=list)
    traceback: bool = False


def _keep(take: Callable[[Common, Any], None]) -> Callable[[click.Context, click.Parameter, Any], None]:
    """The callback of an option of every command."""
    return lambda context, _option, value: take(context.ensure_object(Common), value)


def _take_traceback(common: Common, value: bool) -> None:
    common.traceback |= value


storage_option = click.option(
    "--storage-option",
    multiple=True,
    metavar="KEY=VALUE",
    expose_value=False,
    callback=_keep(lambda common, pairs: common.storage.extend(pairs)),
    help="How to reach the table, such as endpoint_url=...; repeatable. Credentials belong in environment variables.",
)
traceback_option = click.option(
    "--traceback",
    is_flag=True,
    expose_value=False,
    callback=_keep(_take_traceback),
    is_eager=True,
    help="Show the calls that led to an error.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
option_option = click.option(
    "-o", "--option", "pairs", multiple=True, metavar="KEY=VALUE", help="A hoodie.* or hudi_fast.* option; repeatable."
)
path_argument = click.argument("path")
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would change, without changing the table.")
plan_only_option = click.option(
    "--plan-only", is_flag=True, help="Only put a plan on the timeline; another process executes it."
)
run_pending_option = click.option("--run-pending", is_flag=True, help="Execute pending plans without making a new one.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def open_table(path: str) -> HudiTable:
    """Open the table at a path with the storage options of the command line."""
    from hudi_fast.errors import TableNotFoundError
    from hudi_fast.table import HudiTable

    try:
        return HudiTable.open(path, storage_options())
    except TableNotFoundError as error:
        raise TableNotFoundError(f"{error} {nearby_table(path)}") from error


def storage_options() -> dict[str, str]:
    """The ``--storage-option`` values of the command line."""
    return options_of(click.get_current_context().ensure_object(Common).storage, "--storage-option")


def services_of(path: str) -> TableServices:
    """The table services of the table at a path."""
    return open_table(path).services


def options_of(pairs: Sequence[str], hint: str = "-o") -> dict[str, str]:
    """``KEY=VALUE`` texts as a dictionary.

    Args:
        pairs: the texts.
        hint: name of the command-line option, for the message.

    Raises:
        click.BadParameter: a text is not of the form ``KEY=VALUE``.
    """
    options: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE.", param_hint=hint)
        options[key.strip()] = value
    return options


def instant_text(text: str) -> str:
    """Parse the requested time of an instant.

    Raises:
        click.BadParameter: the text is not a number.
    """
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdigit()):
        raise click.BadParameter(f"{text!r} is not the time of an instant; `hudi-fast history` lists the instants.")
    return stripped


def confirm(question: str, yes: bool) -> None:
    """Ask for confirmation on standard error unless ``yes`` is set.

    Raises:
        click.Abort: the answer is no, or standard input has no answer.
    """
    if not yes:
        click.confirm(question, abort=True, err=True)


def show_table(title: str, table: pa.Table, as_json: bool, hidden: list[str], more: str = "") -> None:
    """Print rows.

    Args:
        title: title of the printed table; the number of rows is added.
        table: the rows.
        as_json: print all columns as JSON, one object a line.
        hidden: columns that the printed table leaves out, besides those without a value.
        more: note below the printed table.
    """
    from hudi_fast.cli.render import json_line

    if as_json:
        for row in table.to_pylist():
            click.echo(json_line(row))
    else:
        _print_rows(f"{title} ({table.num_rows:,})", table, hidden, more)


def show_plan(
    title: str, table: pa.Table, as_json: bool, more: str = "", hidden: tuple[str, ...] = (), **summary: Any
) -> None:
    """Print a plan: its first rows as a table, or all of it as JSON.

    Args:
        title: title of the printed table; the number of rows is added.
        table: the rows of the plan.
        as_json: print one JSON object: the summary, and the rows under ``plan``.
        more: note below the printed table.
        hidden: columns that the printed table leaves out.
        summary: values that describe the whole plan; only in JSON.
    """
    from hudi_fast.cli.render import json_line

    if as_json:
        click.echo(json_line({**summary, "plan": table.to_pylist()}))
        return
    left = table.num_rows - _SHOWN_PLAN_ROWS
    notes = [f"{left:,} more; --json shows all." if left > 0 else "", more]
    shown = table.slice(0, _SHOWN_PLAN_ROWS)
    _print_rows(f"{title} ({table.num_rows:,})", shown, list(hidden), " ".join(filter(None, notes)))


def _print_rows(title: str, table: pa.Table, hidden: list[str], more: str) -> None:
    from hudi_fast.cli.render import heading, numeric_columns, readable, show_rows

    rows = table.to_pylist()
    filled = [name for name in table.column_names if any(row[name] not in (None, "", []) for row in rows)]
    columns = [name for name in filled if name not in hidden]
    right, unbroken = numeric_columns(rows, columns), [name for name in columns if name in _UNBROKEN]
    headings, right = [heading(name) for name in columns], [heading(name) for name in right]
    show_rows(title, map(readable, rows), headings, more, right, unbroken)


def show_answer(done: str, nothing: str, instant: str, values: dict[str, Any], as_json: bool) -> None:
    """Print the result of a command.

    Args:
        done: title if the command has an instant.
        nothing: title otherwise; only informative values are printed then.
        instant: requested time of the action; "" if nothing was done.
        values: the other values by name.
        as_json: print all values as one JSON object.
    """
    from hudi_fast.cli.render import json_line, readable, show_values

    if as_json:
        click.echo(json_line({"instant": instant, **values}))
    elif instant:
        if list(values.get("instants", ())) == [instant]:
            values = {name: value for name, value in values.items() if name != "instants"}
        show_values(done, readable({"instant": instant, **values}))
    else:
        informative = {name: value for name, value in values.items() if value and name not in _ALWAYS_SET}
        show_values(nothing, readable(informative))


def show_result(done: str, nothing: str, result: Any, as_json: bool, without: tuple[str, ...] = ()) -> None:
    """Print the fields of a service's result, a dataclass with ``instant``; see :func:`show_answer`."""
    names = [one.name for one in fields(result) if one.name not in (*without, "instant")]
    values = {name: getattr(result, name) for name in names}
    show_answer(done, nothing, result.instant, values, as_json)


# ---- the table that a path without one was probably meant to name

_NAMED_TABLES = 5


def nearby_table(path: str) -> str:
    """A sentence that names a table above, in or beside a path without one; empty if there is none."""
    place = Path(path)
    above = [one for one in place.parents if _is_table(one)]
    if above:
        return f"{path} is in the table {above[0]}."
    inside = _tables_in(place)
    if inside:
        more = " and more" if len(inside) > _NAMED_TABLES else ""
        return f"Tables in it: {', '.join(map(str, inside[:_NAMED_TABLES]))}{more}."
    beside = {one.name: one for one in _tables_in(place.parent)}
    close = difflib.get_close_matches(place.name, beside, 1)
    return f"Did you mean {beside[close[0]]}?" if close else ""


def _tables_in(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if _is_table(one))
    except OSError:  # no folder, or none that this user may list
        return []


def _is_table(folder: Path) -> bool:
    try:
        return (folder / ".hoodie").is_dir()
    except OSError:
        return False


class _NoPandas(MetaPathFinder):
    """Answers that pandas is not installed."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Refuse pandas; leave other modules to other finders."""
        if fullname == "pandas":
            raise ModuleNotFoundError("No command needs pandas.", name=fullname)


def refuse_pandas() -> None:
    """Answer that pandas is not installed."""
    sys.meta_path.insert(0, _NoPandas())


def allow_pandas() -> None:
    """Find pandas again: PySpark needs it."""
    sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _NoPandas)]
