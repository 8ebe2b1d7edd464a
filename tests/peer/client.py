"""Talk to real Apache Hudi in a process of its own (:mod:`tests.peer.server`), in Arrow tables.

Data flow: a table to write goes into a Parquet file in a scratch folder, the request names it; a result comes back as
a Parquet file that is read and deleted. The process starts with the first request and is kept until :meth:`close`.
Whatever it prints goes to a log file; a failure to start or to answer shows the log's tail.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.descriptors import readable
from tests.support.jvm import HADOOP_CONF
from tests.support.memory import memory_folder

__all__ = ["HFileAnswer", "PeerError", "PeerProcessError", "RealHudi"]

PROJECT = Path(__file__).resolve().parents[2]
START_SECONDS = 240.0
REQUEST_SECONDS = 240.0
STOP_SECONDS = 10.0
LOG_TAIL_BYTES = 6000
REQUESTS_BETWEEN_LOOKS = 40
FULL = 0.3
"""Share of its heap beyond which a peer is not used any more."""


class PeerError(Exception):
    """Real Hudi answered a request with an exception.

    Attributes:
        java_class: class of the outermost exception (a Python class when it did not come from the JVM).
        message: its message.
        causes: ``class: message`` of every cause below it, outermost first.
        stack: the traceback as the peer saw it.
    """

    def __init__(self, java_class: str, message: str, causes: Sequence[str], stack: str) -> None:
        super().__init__("\n  caused by ".join([f"{java_class}: {message}", *causes]))
        self.java_class = java_class
        self.message = message
        self.causes = tuple(causes)
        self.stack = stack


class HFileAnswer(NamedTuple):
    """What real Hudi reads from an HFile.

    Attributes:
        count: entries, as the trailer has it.
        entries: key and value of each entry that a scan meets.
        found: key and value of each key that was asked for and found.
        bloom: the stored bloom filter in base64, if there is one.
    """

    count: int
    entries: list[tuple[bytes, bytes]]
    found: list[tuple[bytes, bytes]]
    bloom: str | None


class PeerProcessError(RuntimeError):
    """The peer's process could not start, ended, or did not answer in time."""


class RealHudi:
    """One release of Apache Hudi on Spark 3.5, local[2], UTC.

    Args:
        version: release of the Spark bundle, for example ``1.2.0``.
        python: interpreter that has PySpark 3.5; by default the one that ``make setup`` puts into ``.venv-hudi``.
        settings: more settings of its Spark session.
    """

    def __init__(
        self,
        version: str,
        python: str | os.PathLike[str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.version = version
        self._settings = dict(settings or {})
        self._python = Path(python) if python is not None else PROJECT / ".venv-hudi" / "bin" / "python"
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch: Path | None = None
        self._pending = b""
        self._files = 0
        self._asked = 0
        self._total = 0

    def __enter__(self) -> RealHudi:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        """Whether there is a process; the next request starts one otherwise."""
        return self._process is not None

    @property
    def requests(self) -> int:
        """How many requests the process of now has had."""
        return self._total

    # ---- operations

    def info(self) -> dict[str, Any]:
        """``hudi``, ``spark`` and ``java`` versions, and ``jvm_pid``."""
        return self._ask("info")

    def write(
        self, table: pa.Table, path: str | os.PathLike[str], options: Mapping[str, Any], mode: str = "append"
    ) -> None:
        """``table`` through ``df.write.format("hudi")``; :class:`PeerError` when Hudi refuses.

        A timestamp column with a zone is written as Spark's ``timestamp``, one without as ``timestamp_ntz``.
        """
        with self._rows_file(table) as rows:
            self._ask("write", rows=rows, path=os.fspath(path), options=_texts(options), mode=mode)

    def read(
        self,
        path: str | os.PathLike[str],
        options: Mapping[str, Any] | None = None,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        schema: str | None = None,
    ) -> pa.Table:
        """The rows of ``spark.read.format("hudi").options(...).load(path)``, meta columns included, in no order.

        ``schema`` is that of the reader, as DDL.
        Timestamps are ``timestamp[us, tz=UTC]``, decimals have the table's precision and scale.
        """
        out = self._new_path("result")
        answer = self._ask(
            "read",
            path=os.fspath(path),
            options=_texts(options or {}),
            out=out,
            where=where,
            columns=None if columns is None else list(columns),
            schema=schema,
        )
        return _take_result(answer, out)

    def sql(
        self,
        statement: str,
        tables: Mapping[str, str | os.PathLike[str]] | None = None,
        rows: Mapping[str, pa.Table] | None = None,
    ) -> pa.Table:
        """The result of one SQL statement; a table without columns when it has none.

        ``tables`` names Hudi tables by path and ``rows`` Arrow tables, both as temporary views. A statement that
        changes a table needs it in the catalog: ``CREATE TABLE t USING hudi LOCATION '...'`` first; the session lasts.
        """
        out = self._new_path("result")
        with contextlib.ExitStack() as stack:
            files = {name: stack.enter_context(self._rows_file(table)) for name, table in (rows or {}).items()}
            paths = {name: os.fspath(path) for name, path in (tables or {}).items()}
            answer = self._ask("sql", statement=statement, out=out, tables=paths, rows=files)
        return _take_result(answer, out)

    def sync(self, options: Mapping[str, Any]) -> None:
        """Sync a Hive metastore with ``HiveSyncTool``; the options name table, base path and metastore."""
        self._ask("sync", options=_texts(options))

    def checkpoint(self, path: str | os.PathLike[str]) -> dict[str, str | None]:
        """HoodieStreamer's ``position``, ``reset`` and ``ignored``, in the newest commit that has them."""
        answer = self._ask("checkpoint", path=os.fspath(path))
        return {name: answer[name] for name in ("position", "reset", "ignored")}

    def stream_in(
        self,
        source: str | os.PathLike[str],
        columns: str,
        path: str | os.PathLike[str],
        options: Mapping[str, Any],
        checkpoint: str | os.PathLike[str],
    ) -> None:
        """The Parquet files of a folder, one in a batch, through ``writeStream.format("hudi")``, up to the last."""
        self._ask(
            "stream_in",
            source=os.fspath(source),
            columns=columns,
            path=os.fspath(path),
            options=_texts(options),
            checkpoint=os.fspath(checkpoint),
        )

    def stream_out(
        self, path: str | os.PathLike[str], checkpoint: str | os.PathLike[str], options: Mapping[str, Any] | None = None
    ) -> pa.Table:
        """All that ``readStream.format("hudi")`` has brought under that checkpoint, after it has gone on to the end."""
        out = self._new_path("result")
        answer = self._ask(
            "stream_out",
            path=os.fspath(path),
            options=_texts(options or {}),
            checkpoint=os.fspath(checkpoint),
            out=out,
        )
        return _take_result(answer, out)

    def hfile(self, path: str | os.PathLike[str], keys: Sequence[bytes]) -> HFileAnswer:
        """All entries of an HFile and those of ``keys`` (ascending), by the reader that this release uses."""
        answer = self._ask("hfile", path=os.fspath(path), keys=[key.hex() for key in keys])
        entries, found = (
            [(bytes.fromhex(key), bytes.fromhex(value)) for key, value in answer[name]] for name in ("entries", "found")
        )
        return HFileAnswer(answer["count"], entries, found, answer["bloom"])

    def rest(self) -> None:
        """Call it between tests: a process whose memory Hudi has filled over many requests is ended.

        The next request starts another one.
        """
        if self.is_running and self._asked >= REQUESTS_BETWEEN_LOOKS:
            self._asked = 0
            used = self._ask("memory")["used"]
            if used > FULL:
                self.close()

    def close(self) -> None:
        """End the process and everything it started; remove the scratch folder."""
        self._end(STOP_SECONDS)

    # ---- the process

    def _end(self, patience: float) -> None:
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
            # The JVM is in the same process group and may outlive the interpreter.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None
        self._pending = b""

    def _ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        process = self._process or self._start()
        self._asked += 1
        self._total += 1
        assert process.stdin is not None
        line = json.dumps({"op": operation, **arguments}) + "\n"
        try:
            process.stdin.write(line.encode())
            process.stdin.flush()
        except BrokenPipeError:
            raise self._failure(f"ended before {operation!r} could be asked") from None
        return self._answer(operation, REQUEST_SECONDS)

    def _start(self) -> subprocess.Popen[bytes]:
        if not self._python.exists():
            raise PeerProcessError(f"No interpreter for real Hudi at {self._python}: run `make setup`.")
        if self._scratch is None:
            self._scratch = Path(tempfile.mkdtemp(prefix=f"hudi-{self.version}-", dir=memory_folder()))
        self._total = 0
        with open(self._scratch / "peer.log", "ab") as log:
            self._process = subprocess.Popen(
                [self._python, "-m", "tests.peer.server", self.version, self._scratch, json.dumps(self._settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._scratch,
                env=_clean_environment(),
                start_new_session=True,
            )
        self._answer("start", START_SECONDS)
        return self._process

    def _answer(self, operation: str, seconds: float) -> dict[str, Any]:
        try:
            answer = json.loads(self._line(operation, time.monotonic() + seconds))
        except BaseException:
            # A test's time limit or Ctrl-C: the answer still under way would be taken for that of the next request.
            self._end(0.0)
            raise
        if answer["ok"]:
            return dict(answer["result"])
        error = answer["error"]
        raise PeerError(error["class"], error["message"], error["causes"], error["stack"])

    def _line(self, operation: str, deadline: float) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        pipe = self._process.stdout
        while b"\n" not in self._pending:
            if not readable(pipe, deadline - time.monotonic()):
                raise self._failure(f"did not answer {operation!r} in time")
            chunk = os.read(pipe.fileno(), 1 << 16)
            if not chunk:
                raise self._failure(f"ended during {operation!r}")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _failure(self, what: str) -> PeerProcessError:
        """The error to raise; the process is gone afterwards, so the next request starts a new one."""
        assert self._scratch is not None
        tail = (self._scratch / "peer.log").read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")
        self.close()
        return PeerProcessError(f"Apache Hudi {self.version} {what}. End of its log:\n{tail}")

    # ---- rows beside the pipe

    def _new_path(self, kind: str) -> str:
        if self._process is None:
            self._start()
        self._files += 1
        return f"{self._scratch}/{kind}-{self._files}"

    @contextlib.contextmanager
    def _rows_file(self, table: pa.Table) -> Any:
        path = self._new_path("rows") + ".parquet"
        pq.write_table(table, path, coerce_timestamps="us")
        try:
            yield path
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Option values as Spark spells them."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}


def _take_result(answer: Mapping[str, Any], out: str) -> pa.Table:
    if answer["file"] is None:
        shutil.rmtree(out, ignore_errors=True)
        return pa.table({})
    table = pq.read_table(answer["file"], partitioning=None)
    shutil.rmtree(out, ignore_errors=True)
    # Spark's own schema text in the footer means nothing here.
    return table.replace_schema_metadata(None)


def _clean_environment() -> dict[str, str]:
    """The environment without variables of the tests' own PySpark; ``tests`` can be imported."""
    foreign = ("SPARK_", "PYSPARK_", "_PYSPARK", "PYTHONPATH", "PYTHONHOME")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    return {**kept, "PYTHONPATH": str(PROJECT), "SPARK_CONF_DIR": str(HADOOP_CONF)}
