"""Pages of the documentation as programs: their blocks, what they install, and a run of the blocks.

The line that opens a fence says what becomes of its block::

    ```python, ```python spark    runs; all Python of a page runs in one process, from top to bottom
    ```sh                         runs in a shell, in its turn
    ```py                         does not run: it needs a cluster, a service or data of the reader
    ```                           does not run: commands of the same kind, settings, output
    ```sh title="load.sh"         does not run: a file that the reader saves

Lines ``pip install ...`` of blocks with commands are the installs of the page. They come before everything else.

This module imports nothing but Python's own library: it also is the program that runs a page in an environment that
has the installs of that page alone (:mod:`tests.docs.fresh_pages`)::

    python tests/docs/pages.py docs/tutorial-spark.md
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FENCE", "Block", "blocks_of", "commands_of", "difference", "installs_of", "run_page", "said_of"]

FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"python": "python", "python spark": "python", "sh": "sh"}
INSTALL = re.compile(r"^(?:python -m )?pip install (.*)$", re.MULTILINE)
CHECKOUT = re.compile(r"^\.(?=$|\[)")
"""The project as it is installed in a checkout: ``.``, or ``.[spark]``."""


@dataclass(frozen=True)
class Block:
    """A block of a page that runs."""

    language: str
    """``python`` or ``sh``."""
    code: str
    line: int
    """Number of its first line on the page, from 1."""
    spark: bool = False
    """Whether it needs Spark."""


def blocks_of(text: str) -> Iterator[Block]:
    """The blocks of a page that run, in their order."""
    for match in FENCE.finditer(text):
        language = LANGUAGES.get(match["info"])
        if language is not None:
            line = text.count("\n", 0, match.start("code")) + 1
            yield Block(language, match["code"], line, match["info"].endswith(" spark"))


def installs_of(text: str) -> tuple[str, ...]:
    """Requirements that a page installs, each once. The project is ``hudi-fast``, also where the page has ``.``."""
    commands = [match["code"] for match in FENCE.finditer(text) if match["info"] in ("sh", "")]
    lines = [line for code in commands for line in INSTALL.findall(code)]
    named = [CHECKOUT.sub("hudi-fast", word) for line in lines for word in shlex.split(line, comments=True)]
    return tuple(dict.fromkeys(named))


def commands_of(block: Block) -> str:
    """The commands of a shell block without its installs; empty if it has no others."""
    return INSTALL.sub("", block.code).strip()


def said_of(code: str) -> list[str]:
    """What the calls of ``print`` of a Python block print, as comments behind or below them say; top to bottom."""
    lines = [*code.split("\n"), ""]
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    prints = [one for one in calls if isinstance(one.func, ast.Name) and one.func.id == "print"]
    ends = sorted({(one.end_lineno or 0, one.end_col_offset or 0) for one in prints})
    said = [lines[line - 1].encode()[column:].decode().strip() or lines[line].strip() for line, column in ends]
    return [text.removeprefix("# ") for text in said if text.startswith("# ")]


def difference(code: str, printed: str) -> str:
    """What a Python block printed beside what its comments say; empty if they agree, or nothing is said.

    The comment behind ``print(...)``, or below it, is the line that it prints. Tables of Spark's ``show()`` are not
    compared.
    """
    said = said_of(code)
    shown = printed.splitlines()
    if ".show(" in code:
        shown = [line for line in shown if line[:1] not in ("", "+", "|")]
    return "" if not said or shown == said else f"The page says {said}, and the block printed {shown}."


def run_page(path: Path) -> str:
    """Run the blocks of a page in the current folder; returns why the page failed, or an empty text."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(path.read_text(encoding="utf-8")):
        failed = run_commands(block) if block.language == "sh" else run_python(block, path, names)
        if failed:
            return f"{path}:{block.line}: {failed}"
    return ""


def run_commands(block: Block) -> str:
    """Run a shell block up to the first command that fails; returns its output if one does."""
    done = subprocess.run(["sh", "-e", "-c", commands_of(block)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"exit code {done.returncode}\n{done.stdout}{done.stderr}"


def run_python(block: Block, path: Path, names: dict[str, object]) -> str:
    """Run a Python block; returns its error, or what it printed unlike its comments."""
    program = compile("\n" * (block.line - 1) + block.code, path, "exec")  # so that an error names the page's line
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(program, names)
    except Exception:
        return f"{traceback.format_exc()}{printed.getvalue()}"
    return difference(block.code, printed.getvalue())


if __name__ == "__main__":
    sys.path[0] = ""  # a reader's program imports from the folder that it runs in, not from this one
    sys.exit(run_page(Path(sys.argv[1])) or 0)
