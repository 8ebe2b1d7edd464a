"""The program of a process that decodes Lance files for another process; see ``hudi_fast.formats.lance.decoding``.

::

    one JSON object a line ─► pylance ─► frames: kind, length, content

It imports nothing of hudi_fast, so it starts within half a second.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import pyarrow as pa

__all__ = ["BATCH", "END", "ERROR", "FRAME", "MISSING", "NUMBERS", "SCHEMA"]

FRAME = struct.Struct("<cQ")
"""Header of a frame: its kind, and the length of its content in bytes."""

NUMBERS = b"N"
"""A JSON list: number of rows of the file, and bytes of its data."""

SCHEMA = b"S"
"""The schema of the file with its metadata, as an Arrow IPC message."""

BATCH = b"B"
"""One batch, as an Arrow IPC stream."""

ERROR = b"E"
"""The end after an error: a JSON list of the error's class, or :data:`MISSING`, and the first line of its text."""

END = b"."
"""The end of the answer."""

MISSING = "missing"
"""The file does not exist."""

_NOT_FOUND = "Not found"
"""Beginning of pylance's message about a missing file."""

_READ_AHEAD = 2
"""Number of batches that pylance decodes ahead."""


def _answer(open_file: Any, request: Mapping[str, Any]) -> Iterator[tuple[bytes, Any]]:
    """Frames for a request: the file's numbers and schema, or some ranges of rows of some columns."""
    if "columns" not in request:
        found = open_file(request["path"]).metadata()
        yield NUMBERS, json.dumps([found.num_rows, found.num_data_bytes]).encode()
        yield SCHEMA, found.schema.serialize()
        return
    reader = open_file(request["path"], columns=request["columns"])
    for start, rows in request["ranges"]:
        size = min(rows, request["batch_rows"])
        for batch in reader.read_range(start, rows, batch_size=size, batch_readahead=_READ_AHEAD).to_batches():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield BATCH, sink.getvalue()


def _send(answers: BinaryIO, kind: bytes, content: Any = b"") -> None:
    answers.write(FRAME.pack(kind, len(content)))
    answers.write(content)


def _main() -> None:
    from lance.file import LanceFileReader

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process handles an interrupt of the terminal
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keeps the output of libraries out of the frames
    for line in sys.stdin.buffer:
        try:
            for kind, content in _answer(LanceFileReader, json.loads(line)):
                _send(answers, kind, content)
            _send(answers, END)
        except BaseException as error:  # Rust's panics are not an Exception
            text = str(error).partition("\n")[0]
            name = MISSING if text.startswith(_NOT_FOUND) else type(error).__name__
            _send(answers, ERROR, json.dumps([name, text]).encode())
        answers.flush()


if __name__ == "__main__":
    _main()
