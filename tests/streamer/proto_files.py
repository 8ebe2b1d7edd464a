"""Protobuf definitions of tests, compiled by protoc."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["class_of", "descriptor_set"]


def descriptor_set(text: str, imports: bool = True, **files: str) -> bytes:
    """What protoc makes of the text of a file; other files are named without ``.proto``."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {**files, "root": text}.items():
            Path(folder, f"{name}.proto").write_text(content)
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"--descriptor_set_out={folder}/set"]
        command += ["--include_imports"] if imports else []
        subprocess.run([*command, "root.proto"], check=True, cwd=folder)
        return Path(folder, "set").read_bytes()


def class_of(data: bytes, name: str) -> Any:
    """The class of a message type of a descriptor file."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
