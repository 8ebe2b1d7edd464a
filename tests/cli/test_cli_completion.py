"""Completion of commands and options in shells.

Module: hudi_fast.cli.installation.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

from hudi_fast.cli.main import cli


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_of_a_shell_is_printed(run, shell):
    code, out, err = run("completion", shell)
    assert (code, err) == (0, "")
    assert "_HUDI_FAST_COMPLETE" in out
    assert "hudi-fast" in out


@pytest.mark.parametrize(
    ("shell", "script", "start"),
    [
        ("zsh", ".config/hudi-fast/completion.zsh", ".zshrc"),
        ("fish", ".config/fish/completions/hudi-fast.fish", None),
    ],
)
def test_one_command_installs_it_and_may_be_repeated(run, home, shell, script, start):
    if start is not None:
        (home / start).write_text("# mine")
    for _ in range(2):
        code, out, err = run("completion", shell, "--install")
        assert (code, err) == (0, "")
        assert str(home / script) in out
    assert "_HUDI_FAST_COMPLETE" in (home / script).read_text()
    if start is not None:
        lines = (home / start).read_text().splitlines()
        assert (lines[0], len(lines)) == ("# mine", 2)
        assert str(home / script) in lines[1]


def test_the_shell_is_that_of_the_user_or_must_be_named(run, monkeypatch):
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert run("completion")[1].startswith("function _hudi_fast_completion")
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    code, _, err = run("completion")
    assert (code, "Name the shell: bash, zsh, fish." in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "incomplete", "found"),
    [
        ([], "com", {"compact", "completion"}),
        (["read", "t"], "--wh", {"--where"}),
        (["write", "t", "--mode"], "ov", {"overwrite"}),
    ],
)
def test_commands_options_and_values_are_completed(words, incomplete, found):
    complete = get_completion_class("bash")(cli, {}, "hudi-fast", "_HUDI_FAST_COMPLETE")
    assert {one.value for one in complete.get_completions(words, incomplete)} == found


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_after_one_command(home: Path) -> None:
    (home / "bin").mkdir()
    command = home / "bin" / "hudi-fast"
    command.write_text(f"#!{sys.executable}\nfrom hudi_fast.cli.main import program\nprogram()\n")
    command.chmod(0o755)
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    subprocess.run(
        [command, "completion", "bash", "--install"], check=True, capture_output=True, env={**os.environ, "PATH": path}
    )
    asked = (
        ". ~/.bashrc; COMP_WORDS=(hudi-fast expl); COMP_CWORD=1; _hudi_fast_completion hudi-fast; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(
        ["bash", "-c", asked], capture_output=True, text=True, check=True, env={**os.environ, "PATH": path}
    )
    assert done.stdout.split()[-1] == "explain"
