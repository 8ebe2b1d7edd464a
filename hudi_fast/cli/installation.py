"""The commands that connect: to catalogs, to jobs that move, and to this machine.

The commands that set up this program on a machine: ``completion``, ``warm-up``.

The commands for catalogs, ``sync``, and for jobs that move, ``check``.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hudi_fast.cli.shared import json_option, option_option, options_of, path_argument, services_of, show_table

if TYPE_CHECKING:
    from click.shell_completion import ShellComplete

__all__ = ["COMMANDS"]

_SHELLS = ("bash", "zsh", "fish")
_PROGRAM, _VARIABLE = "hudi-fast", "_HUDI_FAST_COMPLETE"


@click.command(short_help="Complete commands and options in your shell.")
@click.argument("shell", required=False, type=click.Choice(_SHELLS))
@click.option("--install", is_flag=True, help="Write the script where the shell reads it; safe to repeat.")
@click.pass_context
def completion(context: click.Context, shell: str | None, install: bool) -> None:
    """Print the script that completes commands and options in bash, zsh or fish, or install it.

    Without SHELL it is for the shell of this user. Open a new shell after --install.
    """
    name = shell or _shell_of_user()
    script = _completer(name, context.find_root().command).source()
    if not install:
        click.echo(script)
        return
    for place in _installed(name, script):
        click.echo(f"Written: {place}")
    click.echo(f"Open a new {name} to use it.")


@click.command("warm-up", short_help="Compile all kernels into the cache.")
@click.option(
    "--level",
    "levels",
    type=click.IntRange(2, 4),
    multiple=True,
    help="Compile for this level of x86-64 processors only: 2, 3 or 4. Can be given several times.",
)
def warm_up(levels: tuple[int, ...]) -> None:
    """Compile all kernels into the cache folder, so that later processes load them.

    Run it when an image is built. NUMBA_CACHE_DIR names the folder; set it for the processes that use the cache, too.

    With a C compiler (cc), the kernels become a library for every processor of this kind of machine, and every Python.
    Without one, Numba compiles them for this processor and this Python. If the image then runs on other processors, set
    NUMBA_CPU_NAME to one whose instructions all of them have, and NUMBA_CPU_FEATURES to nothing, here and where the
    cache is used.
    """
    from hudi_fast.errors import ConfigError
    from hudi_fast.kernels import cache_folder, compile_into_cache
    from hudi_fast.kernels import warm_up as load_all

    click.echo("Compiling the kernels takes about a minute, unless they are compiled.", err=True)
    try:
        library = compile_into_cache(levels)
    except RuntimeError as error:
        click.echo(f"{error} Numba compiles the kernels instead.", err=True)
        library = None
    folder = cache_folder() if library is None else library
    if folder is None:
        raise ConfigError("No cache folder for kernels is writable. Set NUMBA_CACHE_DIR to a folder that is.")
    click.echo(f"{load_all()} kernels in {folder}")


def _shell_of_user() -> str:
    name = Path(os.environ.get("SHELL", "")).name
    if name not in _SHELLS:
        raise click.UsageError(f"Name the shell: {', '.join(_SHELLS)}. SHELL is {name!r}.")
    return name


def _completer(shell: str, command: click.Command) -> ShellComplete:
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None  # click has all of _SHELLS
    return found(command, {}, _PROGRAM, _VARIABLE)


def _installed(shell: str, script: str) -> list[Path]:
    """Write the script of a shell; the files that were written."""
    home, config = Path.home(), Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    if shell == "fish":  # reads all scripts of this folder
        return [_written(config / "fish" / "completions" / f"{_PROGRAM}.fish", script)]
    place = _written(config / _PROGRAM / f"completion.{shell}", script)
    start = (Path(os.environ.get("ZDOTDIR") or home) if shell == "zsh" else home) / f".{shell}rc"
    line = f'[ -f "{place}" ] && . "{place}"  # completion of {_PROGRAM}'
    present = start.read_text(encoding="utf-8") if start.exists() else ""
    if line in present.splitlines():
        return [place]
    return [place, _written(start, f"{present.rstrip()}\n{line}\n".lstrip("\n"))]


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


_FILE = click.Path(exists=True, dir_okay=False)
_PAIR = re.compile(r"\s*=\s*|\s+")
_HIVE = "hoodie.datasource.hive_sync."


@click.command(short_help="Bring the table's entries in a Hive metastore up to date.")
@path_argument
@click.option("--metastore", metavar="URI", help="thrift://host:port; default: that of hive-site.xml in HIVE_CONF_DIR.")
@click.option("--database", metavar="NAME", help="Database of the catalog; default: the table's, else 'default'.")
@click.option("--table", "name", metavar="NAME", help="Table of the catalog; default: the table's name.")
@click.option("--full", is_flag=True, help="Compare all partitions, not only those written since the last sync.")
@option_option
@json_option
def sync(
    path: str,
    metastore: str | None,
    database: str | None,
    name: str | None,
    full: bool,
    pairs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Bring the entries of the table at PATH in a Hive metastore up to date.

    Creates database and tables that are missing there, changes columns and properties, and adds, moves and drops
    partitions. The table at PATH is not changed.
    """
    import pyarrow as pa

    given = {f"{_HIVE}metastore.uris": metastore, f"{_HIVE}database": database, f"{_HIVE}table": name}
    options = {key: value for key, value in given.items() if value is not None}
    if full:
        options["hoodie.meta.sync.incremental"] = "false"
    synced = services_of(path).sync({**options_of(pairs), **options})
    show_table("Tables of the catalog", pa.Table.from_pylist([asdict(one) for one in synced]), as_json, hidden=[])


@click.command(short_help="Tell which options and SQL statements of a job are honoured.")
@click.option("--options", "options_file", metavar="FILE", type=_FILE, help="File of key=value lines, or key value.")
@click.option("--sql", "sql_file", metavar="FILE", type=_FILE, help="Script of SQL statements.")
@option_option
@json_option
def check(options_file: str | None, sql_file: str | None, pairs: tuple[str, ...], as_json: bool) -> None:
    """Tell which options and SQL statements of a job hudi_fast honours, and what to do about the others.

    The exit code is 1 if something is missed, refused or unknown.
    """
    import hudi_fast as hf

    options = options_of(pairs)
    if options_file is not None:
        options = {**_pairs_of(Path(options_file).read_text(encoding="utf-8")), **options}
    script = None if sql_file is None else Path(sql_file).read_text(encoding="utf-8")
    if not options and script is None:
        raise click.UsageError("Name options with --option or --options, or a script with --sql.")
    found = hf.check(options, script)
    show_table("Options and statements", found.to_arrow(), as_json, hidden=[])
    if not found.is_ready:
        raise click.exceptions.Exit(1)


def _pairs_of(text: str) -> dict[str, str]:
    """Options of a properties file, or of ``spark-defaults.conf``."""
    lines = (line.strip() for line in text.splitlines())
    pairs = (_PAIR.split(line, maxsplit=1) for line in lines if line and not line.startswith("#"))
    found = {one[0]: one[1] if len(one) > 1 else "" for one in pairs}
    return {key.removeprefix("spark."): value for key, value in found.items() if "hoodie." in key}


COMMANDS = (sync, check, completion, warm_up)
"""The commands of this module."""
