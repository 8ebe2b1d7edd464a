"""Callbacks after a commit, over HTTP and in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.writing.flow import WriteResult
from tests.servers.recorders import Recorded, recorded_requests
from tests.servers.s3 import free_port
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options, plain_rows

C = "hoodie.write.commit.callback."


def calling(server: Recorded, **more: Any) -> dict[str, Any]:
    named = {f"{C}http.{key.replace('__', '.')}": value for key, value in more.items()}
    return {f"{C}on": "true", f"{C}http.url": f"http://127.0.0.1:{server.port}/hook", **named}


@pytest.mark.slow
def test_a_commit_calls_the_service_once_with_its_files(tmp_path: Path) -> None:
    with recorded_requests() as server:
        more = calling(server, api__key="k", custom__headers="X-A:1")
        settings = {**mor_options(), "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": 1}
        first = hf.write(plain_rows(range(4)), tmp_path, {**settings, **more})
        second = hf.write(plain_rows(range(4), ts=2), tmp_path, {**settings, **more})
    assert [(one[0], one[1]) for one in server.requests] == [("POST", "/hook")] * 2
    headers, body = server.requests[0][2], json.loads(server.requests[0][3])
    assert (headers["hudi-callback-key"], headers["x-a"]) == ("k", "1")
    assert headers["content-type"] == "application/json; charset=UTF-8"
    assert (body["commitTime"], body["tableName"]) == (first.instant, settings["hoodie.table.name"])
    assert body["basePath"] == str(tmp_path)
    assert sum(one["numInserts"] for one in body["hoodieWriteStat"]) == 4
    later = json.loads(server.requests[1][3])
    assert later["commitTime"] == second.instant  # not that of the compaction after it
    assert {one["logVersion"] for one in later["hoodieWriteStat"]} == {1}


@pytest.mark.slow
def test_a_replaced_table_calls_with_its_own_path(tmp_path: Path) -> None:
    with recorded_requests() as server:
        hf.write(plain_rows(range(4)), tmp_path, options())
        result = hf.write(plain_rows(range(2)), tmp_path, {**options(), **calling(server)}, "overwrite")
    body = json.loads(server.requests[0][3])
    assert (body["commitTime"], body["basePath"]) == (result.instant, str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("status", [500, 0])
def test_a_service_that_fails_is_a_warning_and_the_commit_stays(status: int, tmp_path: Path) -> None:
    with recorded_requests() as server:
        server.status = status
        if not status:
            server.port = free_port()
        with pytest.warns(hf.HudiWarning, match="The commit callback to http://127.* The commit stays"):
            result = hf.write(plain_rows(range(4)), tmp_path, {**options(), **calling(server)})
    assert hf.HudiTable.open(tmp_path).history().to_pylist()[0]["instant"] == result.instant


@pytest.mark.slow
def test_a_function_gets_the_result_of_every_kind_of_write(tmp_path: Path) -> None:
    results: list[WriteResult] = []
    more = {"hudi_fast.commit.callback": results.append}
    expected = [hf.write(plain_rows(range(4)), tmp_path, {**options(), **more})]
    table = hf.HudiTable.open(tmp_path)
    expected.append(table.upsert(plain_rows(range(2), ts=2), more))
    expected.append(hf.update(None, tmp_path, "id = 'k00001'", {"text": "'x'"}, more))
    expected.append(table.delete("id = 'k00000'", more))
    hf.sql("UPDATE t SET text = 'y' WHERE id = 'k00001'", {"t": tmp_path}, more)
    assert results[:4] == expected
    assert len(results) == 5


def test_a_write_of_nothing_or_a_failed_one_calls_nobody(tmp_path: Path) -> None:
    results: list[WriteResult] = []
    more = {"hudi_fast.commit.callback": results.append}
    hf.write(plain_rows(range(4)), tmp_path, options())
    hf.write(plain_rows([]), tmp_path, {**options(), **more, "hoodie.allow.empty.commit": "false"})
    hf.write(plain_rows(range(4)), tmp_path, {**options(), **more}, "ignore")
    with pytest.raises(hf.HudiError):
        hf.write(plain_rows(range(4)), tmp_path, {**options(), **more}, "errorifexists")
    assert results == []


def test_a_function_that_fails_is_a_warning(tmp_path: Path) -> None:
    def fail(result: WriteResult) -> None:
        raise ValueError("no room")

    with pytest.warns(hf.HudiWarning, match=r"hudi_fast\.commit\.callback failed after the commit .*no room"):
        hf.write(plain_rows(range(4)), tmp_path, {**options(), "hudi_fast.commit.callback": fail})
