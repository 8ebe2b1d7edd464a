"""Requests to an S3 server that answers late and asks to slow down, as ``a + b * files``.

::

    hudi_fast, a process of its own ─► proxy: + 30 ms, a share of 503 SlowDown; counts ─► S3 server (that of the tests)

Each step runs on tables of several sizes: one file of two rows in each partition. The rows of the table are read past
the proxy after each step, and compared. Control requests are all but one write of each data file and the reads of data
files. Refused requests are counted apart. The longest chain is the largest number of requests of which each began when
the one before it had been answered: what the step takes at least, in round trips. On Spark
requests of driver and tasks are counted together.

With ``--storm`` all requests are refused for so many seconds in the middle of an upsert, which must end well and leave
nothing behind.

Usage::

    python -m benchmarks.scale.requests [--sizes 10,100,1000] [--busy 0.001,0.01] [--delay 0.03] [--threads 0]
        [--spark] [--by-kind] [--kinds COPY_ON_WRITE,MERGE_ON_READ]
    python -m benchmarks.scale.requests --hudi      # Apache Hudi 1.2.0 on Spark local[2]: writes and snapshot reads
    python -m benchmarks.scale.requests --storm 60 [--storm-at 0.2,0.5,0.9] [--spark]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

from benchmarks.scale.request_client import SETTINGS, rows
from tests.servers.http_faults import Faults, Request, Weather, http_faults
from tests.servers.s3 import ACCESS_KEY, REGION, SECRET_KEY, S3Server, start_s3
from tests.support.jvm import FETCHED
from tests.support.small_tables import assert_tidy, rows_of, table_rows

__all__ = ["fitted", "kind_of", "longest_chain", "main"]

_PROJECT = Path(__file__).resolve().parents[2]
_STEPS = (
    ("insert", "upsert", 1, 1),
    ("upsert", "upsert", 2, 2),
    ("plan of a read", "plan of a read", 2, 2),
    ("snapshot read", "snapshot read", 2, 2),
    ("rollback", "rollback", 2, 1),
    ("upsert again", "upsert", 3, 3),
    ("upsert a third time", "upsert", 4, 4),
    ("clean", "clean", 4, 4),
)
"""Name, step of the client, its argument, and ``ts`` of all rows afterwards."""

_HUDI_STEPS = ("insert", "upsert", "snapshot read", "upsert again")
_SHOWN = ("insert", "upsert", "rollback", "clean", "plan of a read", "snapshot read")


@dataclass(frozen=True)
class Counted:
    """One step at one size.

    Attributes:
        files: that it wrote, deleted or read.
        seconds: of the call.
        by_kind: answered requests by place and kind.
        control: answered requests besides the content of data files.
        refused: requests that were answered 503.
        chain: longest chain of requests.
    """

    files: int
    seconds: float
    by_kind: Counter[tuple[str, str]]
    control: int
    refused: int
    chain: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    given = _arguments(arguments)
    with tempfile.TemporaryDirectory(prefix="requests-") as folder, start_s3(FETCHED, Path(folder)) as server:
        if server.kind != "versitygw":
            raise SystemExit("The rows are read behind the server's back, which needs versitygw: install Go.")
        for kind in given.kinds.split(","):
            if given.storm:
                for share in map(float, given.storm_at.split(",")):
                    _storm(server, kind, given, share)
                continue
            for busy in map(float, given.busy.split(",")):
                _measure(server, kind, given, busy)


def _measure(server: S3Server, kind: str, given: argparse.Namespace, busy: float) -> None:
    sizes = [int(each) for each in given.sizes.split(",")]
    found: dict[str, list[Counted]] = {}
    print(f"\n{kind}, {_side(given)}, {given.delay * 1000:g} ms, {busy:.1%} of 503")
    for files in sizes:
        table = _Table(server, f"{kind}-{files}-{busy}-{given.spark}-{given.hudi}", files, kind, given)
        with table.client(Weather(given.delay, busy)) as client:
            for name, step, ts, rows_ts in _STEPS:
                if given.hudi and name not in _HUDI_STEPS:
                    continue
                found.setdefault(name, []).append(client.counted(step, ts))
                table.check(rows_ts, name)
    heads = "".join(f"{f'{size} files':>12}" for size in sizes)
    print(f"{'step':16}{heads}{'a + b files':>20}{'refused':>9}{'chain':>7}{'seconds':>9}")
    shown = [name for name in _SHOWN if name in found]
    for name in shown:
        counts = found[name]
        base, each = fitted([(one.files, one.control) for one in counts])
        columns = "".join(f"{one.control:>12}" for one in counts)
        last = counts[-1]
        formula = f"{base:.0f} + {each:.2f} files"
        print(f"{name:16}{columns}{formula:>20}{last.refused:>9}{last.chain:>7}{last.seconds:>9.1f}", flush=True)
    if given.by_kind:
        for name in shown:
            parts = sorted(found[name][-1].by_kind.items())
            print(f"{name}: " + ", ".join(f"{place} {each} {count}" for (place, each), count in parts))


def _storm(server: S3Server, kind: str, given: argparse.Namespace, share: float) -> None:
    """Refuse all requests for a while in the middle of an upsert."""
    files = int(given.sizes.split(",")[0])
    table = _Table(server, f"storm-{kind}-{share}-{given.spark}", files, kind, given)
    calm = Weather(given.delay)
    with table.client(calm) as client:
        client.counted("upsert", 1)
        expected = sum(client.counted("upsert", 2).by_kind.values())
        begins = threading.Thread(target=client.refuse_all, args=(int(expected * share), given.storm, calm))
        begins.start()
        done = client.counted("upsert", 3)
        begins.join()
        table.check(3, "upsert")
        assert_tidy(table.objects)
    print(
        f"{kind}, {_side(given)}, {files} files: {given.storm:g} s of 503 after "
        f"{share:.0%} of the requests: {done.seconds:.1f} s, {done.refused} refused, rows right, nothing left over",
        flush=True,
    )


def _side(given: argparse.Namespace) -> str:
    return "Apache Hudi 1.2.0" if given.hudi else "Spark" if given.spark else "one process"


@dataclass
class _Table:
    server: S3Server
    name: str
    files: int
    kind: str
    given: argparse.Namespace

    @property
    def objects(self) -> Path:
        return self.server.objects / self.server.bucket / self.name

    def check(self, ts: int, step: str) -> None:
        if table_rows(self.objects) != rows_of(rows(self.files, ts)):
            raise SystemExit(f"{self.name}: wrong rows after {step}")

    @contextmanager
    def client(self, weather: Weather) -> Iterator[_Client]:
        what = [self.server.path(self.name), "--files", str(self.files), "--kind", self.kind]
        modules = {}
        if self.given.hudi:
            program = Path(__file__).with_name("request_hudi.py")
            command = [str(_PROJECT / ".venv-hudi/bin/python"), str(program), *what, "--settings", json.dumps(SETTINGS)]
            modules = {"PYTHONPATH": str(_PROJECT / "benchmarks/against_hudi")}
        else:
            command = [sys.executable, "-m", "benchmarks.scale.request_client", *what]
            command += ["--threads", str(self.given.threads), *(["--spark"] if self.given.spark else [])]
        with ExitStack() as stack:
            proxy = stack.enter_context(http_faults(self.server.url))
            keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_REGION": REGION}
            ends = {"AWS_ENDPOINT_URL": proxy.url}
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, **keys, **ends, **modules},
            )
            proxy.weather = weather
            try:
                yield _Client(process, proxy)
            finally:
                assert process.stdin is not None
                process.stdin.close()
                process.wait(60)


@dataclass
class _Client:
    process: subprocess.Popen[str]
    proxy: Faults

    def counted(self, step: str, ts: int) -> Counted:
        self.proxy.arm()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps({"step": step, "ts": ts}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the process ended"}
        if "error" in answer:
            raise SystemExit(f"{step}: {answer['error']}")
        while len(self.proxy.answered) < len(self.proxy.asked):  # the last answer is noted right after it was sent
            time.sleep(0.001)
        every = self.proxy.answered
        answered = [each.what for each in every if each.status != 503]
        refused = len(every) - len(answered)
        by_kind, control, chain = Counter(map(kind_of, answered)), _control(answered), longest_chain(every)
        return Counted(answer["files"], answer["seconds"], by_kind, control, refused, chain)

    def refuse_all(self, after: int, seconds: float, calm: Weather) -> None:
        """Wait for so many requests, then let all be refused for so many seconds."""
        while len(self.proxy.asked) < after:
            time.sleep(0.005)
        self.proxy.weather = Weather(calm.delay, 1.0)
        time.sleep(seconds)
        self.proxy.weather = calm


def kind_of(what: str) -> tuple[str, str]:
    """Place and kind of a request."""
    method, _, target = what.partition(" ")
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    listed = method == "GET" and ("list-type" in query or "prefix" in query)
    path = query.get("prefix", [""])[0] if listed else unquote(parts.path)
    if ".hoodie_partition_metadata" in path:
        place = "partition markers"
    elif "/.hoodie/metadata" in path:
        place = "metadata table"
    elif "/.hoodie/.temp" in path:
        place = "markers"
    elif "/.hoodie" in path:
        place = "timeline"
    else:
        place = "many" if "delete" in query else "data"
    return place, "LIST" if listed else method


def _control(asked: list[str]) -> int:
    """Requests besides one write of each data file, and its reads."""
    content = [one for one in asked if kind_of(one)[0] == "data" and kind_of(one)[1] in ("GET", "PUT")]
    written = [one for one in content if one.startswith("PUT")]
    return len(asked) - len(content) + len(written) - len(set(written))


def longest_chain(requests: Sequence[Request]) -> int:
    """The largest number of requests of which no two were under way at one time."""
    count, free = 0, float("-inf")
    for one in sorted(requests, key=lambda each: each.end):
        if one.begin >= free:
            count, free = count + 1, one.end
    return count


def fitted(points: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """``a`` and ``b`` of ``a + b * files`` by least squares of relative errors, so that small sizes count, too."""
    sizes, counts = np.array(points, dtype=float).T
    weights = 1 / np.maximum(counts, 1)
    if len(set(sizes)) < 2:
        return float(counts[0]), 0.0
    matrix = np.stack([weights, sizes * weights], axis=1)
    (base, each), *_ = np.linalg.lstsq(matrix, counts * weights, rcond=None)
    return float(base), float(each)


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10,100,1000", help="numbers of files; the storm takes the first")
    parser.add_argument("--kinds", default="COPY_ON_WRITE", help="table types, separated by commas")
    parser.add_argument("--delay", type=float, default=0.03, help="seconds added to each request")
    parser.add_argument("--busy", default="0.001,0.01", help="shares of requests that are answered 503")
    parser.add_argument("--spark", action="store_true", help="on Spark local[2] instead of one process")
    parser.add_argument("--hudi", action="store_true", help="Apache Hudi instead of hudi_fast")
    parser.add_argument("--threads", type=int, default=0, help="of one process: hudi_fast.threads; 0 for the default")
    parser.add_argument("--by-kind", action="store_true", help="print requests by place and kind at the largest size")
    parser.add_argument("--storm", type=float, default=0.0, help="seconds of 503 in the middle of an upsert")
    parser.add_argument("--storm-at", default="0.5", help="shares of the requests of an upsert before the storm")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
