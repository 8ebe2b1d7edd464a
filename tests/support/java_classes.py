"""Compile Java sources of the tests, once for each text and class path."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support.jvm import CLASSES, java_command

__all__ = ["CompilerError", "compiled_classes", "expanded_jars", "java_program"]


class CompilerError(RuntimeError):
    """The sources do not compile, or Java has no compiler."""


def java_program() -> str:
    """The Java to use; ``FileNotFoundError`` where there is none."""
    command = java_command()
    if command is None:
        raise FileNotFoundError("Java is not installed, neither below JAVA_HOME nor on the path.")
    return command


def expanded_jars(jars: Sequence[Path | str]) -> list[str]:
    """Paths of jars; the compiler's module does not know ``/*`` as the commands do."""
    paths = []
    for jar in map(str, jars):
        paths += sorted(map(str, Path(jar[:-2]).glob("*.jar"))) if jar.endswith("/*") else [jar]
    return paths


def compiled_classes(sources: Sequence[Path], class_path: Sequence[str]) -> Path:
    """A folder with the classes of the sources: made once for these texts and these jars.

    The compiler is a module of the Java that runs the tests; its command ``javac`` need not be installed.
    """
    digest = hashlib.sha256("\n".join([*(file.read_text() for file in sources), *class_path]).encode()).hexdigest()
    folder = CLASSES / digest[:16]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix="new-", dir=folder.parent))
        compiler = [
            java_program(),
            "-m",
            "jdk.compiler/com.sun.tools.javac.Main",
            "-nowarn",
            "-proc:none",
            "-d",
            str(fresh),
        ]
        done = subprocess.run(
            [*compiler, "-cp", ":".join(class_path), *map(str, sources)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            shutil.rmtree(fresh)
            names = ", ".join(source.name for source in sources)
            raise CompilerError(f"Java did not compile {names}: {done.stdout}{done.stderr}")
        with contextlib.suppress(OSError):  # another process of the tests was first
            fresh.rename(folder)
        shutil.rmtree(fresh, ignore_errors=True)
    return folder
