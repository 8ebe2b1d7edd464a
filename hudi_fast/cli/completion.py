"""The command that teaches a shell the commands and options: ``completion``."""

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


COMMANDS = (completion,)
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
