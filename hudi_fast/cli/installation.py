"""The commands that set up this program on a machine: ``completion``, ``warm-up``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

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


COMMANDS = (completion, warm_up)
"""The commands of this module."""


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
