"""Metrics and commit callbacks are those of real Apache Hudi for the same writes.

Modules: hudi_fast.monitoring.metrics, hudi_fast.monitoring.callbacks.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from tests.peer.client import PeerError, RealHudi
from tests.servers.recorders import recorded_lines, recorded_requests
from tests.support.small_tables import plain_rows

W, M, C, V = "hoodie.datasource.write.", "hoodie.metrics.", "hoodie.write.commit.callback.", "hoodie.precommit."
FAMILIES = ("commit", "deltacommit", "replacecommit", "compaction", "clustering", "clean", "rollback")
NOT_OURS = ("fileCreationTime", "counter", "timer", "earliestInflight", "latestCompleted")
"""Metrics that hudi_fast does not have, or that tell the history before this call."""
TIMES_AND_SIZES = re.compile(r"(Time|duration|BytesWritten|LogFilesSize)$")


def settings(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "hoodie.table.name": "trips.x",
        f"{W}recordkey.field": "id",
        f"{W}partitionpath.field": "part",
        f"{W}precombine.field": "ts",
        f"{W}table.type": kind,
        f"{M}on": "true",
        f"{M}reporter.type": "GRAPHITE",
        f"{M}graphite.host": "127.0.0.1",
        f"{M}graphite.metric.prefix": "pre",  # without it, Apache Hudi 1.2.0 fails with a NullPointerException
        f"{C}on": "true",
        f"{C}http.custom.headers": "X-Team:a",
        "hoodie.clean.commits.retained": "1",
        # Of the other kind of table it tells the same, and takes most of the time of a small write.
        "hoodie.metadata.enable": "true" if kind == "COPY_ON_WRITE" else "false",
        **more,
    }


WRITES = [
    ("COPY_ON_WRITE", range(6), 1, {}),
    ("COPY_ON_WRITE", range(4, 9), 2, {}),
    ("COPY_ON_WRITE", range(2), 3, {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "3"}),
    ("COPY_ON_WRITE", range(3), 4, {f"{W}operation": "insert_overwrite"}),
    ("MERGE_ON_READ", range(6), 1, {}),
    ("MERGE_ON_READ", range(4), 2, {"hoodie.compact.inline": "false"}),
    (
        "MERGE_ON_READ",
        range(6),
        3,
        {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"},
    ),
]


def gauges(lines: list[str]) -> dict[str, int]:
    found = {}
    for line in lines:
        name, value, _ = line.split()
        before, prefix, rest = name.split(".", 2)
        wanted = (before, prefix) == ("pre", "trips_x") and rest.split(".")[0] in FAMILIES
        if wanted and not any(word in rest for word in NOT_OURS):
            found[rest] = int(float(value))
    return found


def comparable(body: str) -> Any:
    """A message without file ids, sizes and times."""
    message = json.loads(body)
    message["commitTime"] = len(message["commitTime"])
    message["basePath"] = ""
    for stat in message["hoodieWriteStat"]:
        for name, value in stat.items():
            if name in ("fileId", "path", "prevBaseFile", "prevCommit"):
                stat[name] = type(value).__name__ if value != "null" else value
        stat["logFiles"] = len(stat.get("logFiles", ()))
        stat["runtimeStats"] = None if stat["runtimeStats"] is None else list(stat["runtimeStats"])
        stat["totalWriteBytes"] = stat["fileSizeInBytes"] = 0
    message["hoodieWriteStat"].sort(key=lambda one: one["partitionPath"])
    return message


@pytest.mark.peer
def test_names_values_and_messages_are_those_of_apache_hudi(hudi_12: RealHudi, tmp_path: Path) -> None:
    told: dict[str, list[tuple[dict[str, int], list[tuple[dict[str, str], str]]]]] = {"hudi": [], "ours": []}
    for side in told:
        for kind, numbers, ts, more in WRITES:
            with recorded_lines() as graphite, recorded_requests() as service:
                options = settings(kind, **more)
                options[f"{M}graphite.port"] = str(graphite.port)
                options[f"{C}http.url"] = f"http://127.0.0.1:{service.port}/hook"
                path = tmp_path / side / kind
                if side == "hudi":
                    hudi_12.write(plain_rows(numbers, ts=ts), path, options)
                else:
                    hf.write(plain_rows(numbers, ts=ts), path, options)
            told[side].append((gauges(graphite.lines), [(one[2], one[3]) for one in service.requests]))
    for write, theirs, ours in zip(WRITES, told["hudi"], told["ours"], strict=True):
        expected = {name: value for name, value in theirs[0].items() if not TIMES_AND_SIZES.search(name)}
        found = {name: ours[0].get(name) for name in expected}
        assert found == expected, write
        assert {*theirs[0]} <= {*ours[0]}, write
        ((their_headers, their_body),) = theirs[1]
        ((our_headers, our_body),) = ours[1]
        for name in ("hudi-callback-key", "content-type", "x-team"):
            assert our_headers[name] == their_headers[name]
        assert comparable(our_body) == comparable(their_body), write
        assert list(json.loads(our_body)) == list(json.loads(their_body))


@pytest.mark.peer
def test_validators_refuse_what_apache_hudi_refuses(hudi_12: RealHudi, tmp_path: Path) -> None:
    package = "org.apache.hudi.client.validator."
    count = "select count(*) from <TABLE_NAME>"
    base = settings("COPY_ON_WRITE", **{f"{M}on": "false", f"{C}on": "false", "hoodie.metadata.enable": "false"})
    cases = [
        ("SqlQueryEqualityPreCommitValidator", "equality.sql.queries", count, range(4), True),
        ("SqlQueryEqualityPreCommitValidator", "equality.sql.queries", count, range(3, 6), False),
        ("SqlQueryInequalityPreCommitValidator", "inequality.sql.queries", count, range(4), False),
        ("SqlQuerySingleResultPreCommitValidator", "single.value.sql.queries", f"{count}#4", range(4), True),
        ("SqlQuerySingleResultPreCommitValidator", "single.value.sql.queries", f"{count}#5", range(4), False),
    ]
    for side in ("hudi", "ours"):
        path = tmp_path / side
        hf.write(plain_rows(range(4)), path, base)
        for name, key, query, numbers, accepted in cases:
            more = {**base, f"{V}validators": package + name, f"{V}validators.{key}": query}
            write = hudi_12.write if side == "hudi" else hf.write
            if accepted:
                write(plain_rows(numbers, ts=2), path, more)
            else:
                with pytest.raises((PeerError, hf.ValidationError), match=r"validation failed|refuses"):
                    write(plain_rows(numbers, ts=2), path, more)
        assert hf.HudiTable.open(path).to_arrow().num_rows == 4
