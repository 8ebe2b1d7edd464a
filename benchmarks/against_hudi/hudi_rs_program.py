"""Builds the Rust program of :mod:`hudi_rs_writer_side` with cargo, in ``artifacts/hudi_rs``.

hudi-rs 0.6 writes tables, but it is on crates.io only: the ``hudi`` package for Python is an older release that reads.
The first build takes up to half an hour on two cores; later ones only check that nothing has changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

__all__ = ["PROGRAM", "CannotBuildError", "build", "hudi_rs_version"]

SOURCE = Path(__file__).resolve().parent / "hudi_rs"
TARGET = Path(__file__).resolve().parents[2] / "artifacts" / "hudi_rs"
PROGRAM = TARGET / "release" / "hudi_rs_verbs"


class CannotBuildError(Exception):
    """The program cannot be built; the message is one sentence."""


def build() -> None:
    """Build the program, if it is not up to date."""
    tools = {"cargo": "cargo", "protoc": os.environ.get("PROTOC", "protoc")}
    missing = [name for name, command in tools.items() if shutil.which(command) is None]
    if missing:
        raise CannotBuildError(
            f"hudi-rs cannot be built without {' and '.join(missing)} (rustup.rs; Debian package protobuf-compiler)."
        )
    command = ["cargo", "build", "--release", "--locked", "--target-dir", str(TARGET)]
    if subprocess.run(command, cwd=SOURCE, check=False).returncode:
        raise CannotBuildError(f"hudi-rs cannot be built: '{' '.join(command)}' failed in {SOURCE}.")


def hudi_rs_version() -> str:
    """The release of hudi-rs that the program is built from."""
    packages = tomllib.loads((SOURCE / "Cargo.lock").read_text())["package"]
    return str(next(package["version"] for package in packages if package["name"] == "hudi-core"))
