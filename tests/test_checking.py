"""What a job that moves is told: which options and statements are honoured."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import hudi_fast as hf

KEYS = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}


def verdicts(found: hf.CheckResult) -> list[str]:
    return [one.verdict for one in found.findings]


@pytest.mark.parametrize(
    ("key", "value", "verdict", "advice"),
    [
        ("hoodie.datasource.write.operation", "upsert", "honoured", ""),
        ("hoodie.datasource.hive_sync.mode", "hms", "honoured", ""),
        ("hoodie.metrics.lock.enable", "true", "missed", "no metrics of locks"),
        ("hoodie.metrics.lock.enable", "false", "no effect", ""),
        ("hoodie.metrics.datadog.api.key", "x", "no effect", "reporters that hudi_fast does not have"),
        ("hoodie.index.type", "HBASE", "refused", "not supported"),
        ("hoodie.datasource.write.oparation", "upsert", "unknown", "hoodie.datasource.write.operation"),
    ],
)
def test_an_option(key: str, value: str, verdict: str, advice: str) -> None:
    (found,) = hf.check({key: value}).findings
    assert (found.kind, found.name, found.verdict) == ("option", key, verdict)
    assert advice in found.advice
    assert verdict in ("honoured", "no effect") or found.advice


def test_options_that_contradict_each_other() -> None:
    found = hf.check({**KEYS, "hoodie.compact.inline": "true", "hoodie.compact.schedule.inline": "true"})
    assert found.findings[-1].name == "all options together"
    assert found.findings[-1].verdict == "refused"
    assert not found.is_ready
    assert hf.check(KEYS).is_ready


def test_a_sync_needs_a_metastore_that_may_be_the_sessions() -> None:
    options = {**KEYS, "hoodie.datasource.hive_sync.enable": "true"}
    found = hf.check(options)
    assert "thrift://host:port" in found.findings[-1].advice
    settings = {"spark.hadoop.hive.metastore.uris": "thrift://h:9083"}
    session = SimpleNamespace(
        conf=SimpleNamespace(get=lambda key, default: settings.get(key, default)),
        sql=lambda text: SimpleNamespace(collect=list),
    )
    assert hf.check(options, session=session).is_ready


def test_statements_of_a_script() -> None:
    script = """
        -- a day's work; in one script
        SET hoodie.metrics.lock.enable = true;
        MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE;
        SELECT 'a;b' FROM t;
        CALL show_file_status(table => 't', file => 'f');
        CREATE TABLE t (id int) USING hudi CLUSTERED BY (id) INTO 4 BUCKETS;
        SELECT * FROM hudi_metadata('t');
        MERGE INTO t;
        some thing
    """
    found = hf.check(sql=script)
    expected = ["missed", "honoured", "honoured", "refused", "refused", "refused", "refused", "unknown"]
    assert verdicts(found) == expected
    assert all(one.advice for one in found.findings if one.verdict not in ("honoured", "no effect"))
    assert verdicts(hf.check(sql=["SELECT 1", "SELECT 2"])) == ["honoured", "honoured"]


def test_settings_of_a_session() -> None:
    rows = [("spark.hoodie.metrics.lock.enable", "true"), ("hoodie.write.lock.provider", "x"), ("spark.app.name", "a")]
    settings: dict[str, Any] = {"spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"}
    session = SimpleNamespace(
        conf=SimpleNamespace(get=lambda key, default: settings.get(key, default)),
        sql=lambda text: SimpleNamespace(collect=lambda: rows),
    )
    found = hf.check(session=session)
    assert [(one.name, one.verdict) for one in found.findings] == [
        ("spark.sql.extensions", "no effect"),
        ("hoodie.metrics.lock.enable", "missed"),
        ("hoodie.write.lock.provider", "refused"),
    ]


def test_a_result_is_a_table() -> None:
    table = hf.check(KEYS).to_arrow()
    assert table.column_names == ["kind", "name", "verdict", "advice"]
    assert table.num_rows == 2
    assert hf.check().to_arrow().num_rows == 0


@pytest.mark.parametrize("given", [{"options": "hoodie.a=b"}, {"sql": [1]}, {"session": "spark"}])
def test_other_arguments_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(hf.ConfigError):
        hf.check(**given)
