"""Metrics of writes and services: names and values, and where they arrive.

Modules: hudi_fast.monitoring.metrics, hudi_fast.config.monitoring_options.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from tests.servers.push_gateway import start_push_gateway
from tests.servers.recorders import Recorded, recorded_lines
from tests.servers.s3 import ServerError, free_port
from tests.support.jvm import FETCHED
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options, plain_rows

M = "hoodie.metrics."


def metrics(reporter: str, **more: Any) -> dict[str, Any]:
    named = {f"{M}{key.replace('__', '.')}": value for key, value in more.items()}
    return {f"{M}on": True, f"{M}reporter.type": reporter, **named}


def graphite(server: Recorded, **more: Any) -> dict[str, Any]:
    return metrics("GRAPHITE", graphite__host="127.0.0.1", graphite__port=server.port, **more)


def values(lines: list[str]) -> dict[str, int]:
    """The last value of each name."""
    return {line.split()[0]: int(line.split()[1]) for line in lines}


def scraped(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


def test_a_write_reports_what_it_wrote(tmp_path: Path) -> None:
    with recorded_lines() as server:
        settings = {**options(), **graphite(server, graphite__metric__prefix="pre")}
        hf.write(plain_rows(range(6)), tmp_path, settings)
        result = hf.write(plain_rows(range(4, 8), ts=2), tmp_path, settings)
    found = values(server.lines)
    prefix = f"pre.{settings['hoodie.table.name']}.commit."
    named = {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}
    assert {name: named[name] for name in ("totalInsertRecordsWritten", "totalUpdateRecordsWritten")} == {
        "totalInsertRecordsWritten": 2,
        "totalUpdateRecordsWritten": 2,
    }
    assert (named["totalRecordsWritten"], named["totalPartitionsWritten"]) == (8, 2)
    assert (named["totalFilesInsert"], named["totalFilesUpdate"]) == (0, result.files_written)
    assert named["totalBytesWritten"] == result.bytes_written
    assert str(named["latestCompletedCompactionInstant"]) < result.instant
    assert 0 < named["duration"] < 60_000
    assert found["pre." + settings["hoodie.table.name"] + ".clean.pendingCleanInstantCount"] == 0


@pytest.mark.slow
def test_services_report_under_their_own_names(tmp_path: Path) -> None:
    with recorded_lines() as server:
        more = {"hoodie.clean.commits.retained": 1, **graphite(server, reporter__metricsname__prefix="x")}
        settings = {**mor_options(), "hoodie.compact.inline": "false", **more}
        for ts in range(1, 4):
            hf.write(plain_rows(range(4), ts=ts), tmp_path, settings)
        services = hf.HudiTable.open(tmp_path).services
        services.compact(more)
        hf.write(plain_rows(range(4), ts=5), tmp_path, settings)
        services.clean(more)
        services.cluster({**more, "hoodie.clustering.inline": True})
        services.archive(more)
        services.rollback(hf.write(plain_rows(range(4), ts=6), tmp_path, settings).instant, more)
    found = values(server.lines)
    assert found["x.compaction.totalLogFilesCompacted"] == 4
    assert found["x.compaction.totalCompactedRecordsUpdated"] == 4
    assert found["x.clustering.totalRecordsWritten"] == 4
    assert {"x.clean.numFilesDeleted", "x.archive.numInstantsArchived", "x.rollback.numFilesDeleted"} <= {*found}
    assert {"x.clean.duration", "x.rollback.duration", "x.deltacommit.commitTime"} <= {*found}


def test_prometheus_scrapes_an_endpoint_of_the_process(tmp_path: Path) -> None:
    port = free_port()
    settings = metrics("PROMETHEUS", prometheus__port=port, pushgateway__report__labels="team:a,zone:b")
    for name in ("one.a", "two"):
        more = {**options(), "hoodie.table.name": name, **settings}
        hf.write(plain_rows(range(3)), tmp_path / name, more)
    found = scraped(port)
    labels = '{team="a",zone="b"}'
    assert found[f"one_a_commit_totalRecordsWritten{labels}"] == 3.0
    assert found[f"two_commit_totalInsertRecordsWritten{labels}"] == 3.0


@pytest.mark.slow
@pytest.mark.server
def test_a_push_gateway_gets_metrics_and_loses_them_when_the_process_ends(tmp_path: Path) -> None:
    try:
        with start_push_gateway(FETCHED, tmp_path) as port:
            for deletes in ("true", "false"):
                program(tmp_path / deletes, port, deletes)
            found = scraped(port)
    except ServerError as error:
        pytest.skip(str(error))
    pushed = [name for name in found if name.startswith("t_commit_totalRecordsWritten")]
    assert pushed == ['t_commit_totalRecordsWritten{instance="",job="job_false",team="a"}']


def program(path: Path, port: int, deletes: str) -> None:
    """A process of its own that writes a table, and tells the gateway."""
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        **metrics("PROMETHEUS_PUSHGATEWAY", pushgateway__host="127.0.0.1", pushgateway__port=port),
        f"{M}pushgateway.job.name": f"job_{deletes}",
        f"{M}pushgateway.random.job.name.suffix": "false",
        f"{M}pushgateway.report.labels": "team:a",
        f"{M}pushgateway.delete.on.shutdown": deletes,
    }
    code = f"import pyarrow as pa, hudi_fast as hf; hf.write(pa.table({{'id': ['a']}}), {str(path)!r}, {settings!r})"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True)


def test_the_console_and_the_log_get_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    hf.write(plain_rows(range(3)), tmp_path, {**options(), **metrics("CONSOLE", reporter__metricsname__prefix="c")})
    assert "c.commit.totalRecordsWritten = 3\n" in capsys.readouterr().out
    with caplog.at_level(logging.INFO, "hudi_fast.metrics"):
        more = metrics("SLF4J", reporter__metricsname__prefix="l")
        hf.write(plain_rows(range(3), ts=2), tmp_path, {**options(), **more})
    said = {record.metric: record.value for record in caplog.records if record.name == "hudi_fast.metrics"}
    assert said["l.commit.totalUpdateRecordsWritten"] == 3


def test_a_server_that_does_not_answer_does_not_fail_the_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "hudi_fast"):
        for reporter in ("GRAPHITE", "PROMETHEUS_PUSHGATEWAY"):
            port = free_port()
            more = metrics(reporter, graphite__port=port, pushgateway__port=port)
            assert hf.write(plain_rows(range(3)), tmp_path, {**options(), **more}).instant
    texts = [record.getMessage() for record in caplog.records]
    assert [text for text in texts if "could not be reported to GRAPHITE" in text]
    assert [text for text in texts if "could not be reported to PROMETHEUS_PUSHGATEWAY" in text]


def test_a_table_that_is_replaced_reports_once(tmp_path: Path) -> None:
    with recorded_lines() as server:
        settings = {**options(), **graphite(server, reporter__metricsname__prefix="x")}
        hf.write(plain_rows(range(6)), tmp_path, settings)
        server.settled().clear()
        hf.write(plain_rows(range(2)), tmp_path, settings, "overwrite")
    assert [line.split()[1] for line in server.lines if line.startswith("x.commit.totalRecordsWritten ")] == ["2"]


@pytest.mark.parametrize(
    ("more", "error", "text"),
    [
        (metrics("JMX"), hf.UnsupportedFeatureError, "no JMX; use PROMETHEUS"),
        (metrics("DATADOG"), hf.UnsupportedFeatureError, "Datadog Agent"),
        (metrics("CLOUDWATCH"), hf.UnsupportedFeatureError, "CloudWatch agent"),
        (metrics("M3"), hf.UnsupportedFeatureError, "M3 scrapes"),
        (metrics("INMEMORY"), hf.UnsupportedFeatureError, "Use CONSOLE"),
        (metrics("NAGIOS"), hf.ConfigError, "valid values"),
        (metrics("CONSOLE", reporter__class="com.example.R"), hf.UnsupportedFeatureError, r"reporter\.class=com"),
        (metrics("CONSOLE", configs__properties="/a"), hf.UnsupportedFeatureError, r"configs\.properties=/a"),
        (metrics("PROMETHEUS", prometheus__port=70000), hf.ConfigError, "at most 65535"),
        (metrics("PROMETHEUS", pushgateway__report__labels="team"), hf.ConfigError, "name:value"),
        (metrics("PROMETHEUS", pushgateway__report__labels="a:1,a:2"), hf.ConfigError, "twice"),
    ],
)
def test_what_cannot_be_reported_is_refused_before_the_write(
    more: dict[str, Any], error: type[hf.HudiError], text: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=text):
        hf.write(plain_rows(range(3)), tmp_path, {**options(), **more})
    assert list(tmp_path.iterdir()) == []


def test_metrics_that_are_off_need_nothing(tmp_path: Path) -> None:
    hf.write(plain_rows(range(3)), tmp_path, {**options(), **metrics("JMX"), f"{M}on": "false"})


def test_a_missing_package_is_refused_before_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(hf.ConfigError, match=r"pip install 'hudi-fast\[metrics\]'"):
        hf.write(plain_rows(range(3)), tmp_path, {**options(), **metrics("PROMETHEUS")})
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with recorded_lines() as server, caplog.at_level(logging.ERROR, "hudi_fast"):
        more = metrics("PROMETHEUS", prometheus__port=server.port)
        hf.write(plain_rows(range(3)), tmp_path, {**options(), **more})
    assert f"The port {server.port} of hoodie.metrics.prometheus.port cannot be served" in caplog.text
