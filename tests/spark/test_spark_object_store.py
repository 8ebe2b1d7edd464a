"""Spark on an S3 server: driver and tasks reach the table as the call, or the session, says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.spark.storage import reached_by_spark, split_options, storage_of, storage_settings
from hudi_fast.storage.base import Storage
from tests.servers.http_faults import http_faults
from tests.servers.s3 import SECRET_KEY, S3Server
from tests.support.sessions import hadoop_settings
from tests.support.small_tables import assert_tidy, options


def rows(spark: Any, start: int, ts: int) -> Any:
    return spark.range(start, start + 20).selectExpr(
        "concat('k', id) as id", "concat('p', id % 2) as part", f"{ts} as ts", f"concat('{ts}-', id) as text"
    )


@pytest.fixture
def told(spark: Any, s3_server: S3Server) -> Iterator[Any]:
    """A session that was told of the server as programs tell S3A."""
    settings = {"endpoint": s3_server.url, "access.key": "not-this-one", "endpoint.region": "us-east-1"}
    settings |= {"secret.key": SECRET_KEY, f"bucket.{s3_server.bucket}.access.key": s3_server.options["access_key"]}
    with hadoop_settings(spark, {f"fs.s3a.{name}": value for name, value in settings.items()}):
        yield spark


@pytest.mark.long
def test_a_session_that_knows_s3_needs_to_be_told_nothing(told: Any, s3_server: S3Server) -> None:
    path = s3_server.path("told").replace("s3://", "s3a://")
    for ts in (1, 2):
        hf.write(rows(told, ts * 10, ts), path, options())
    assert hf.read(told, path).count() == 30
    found = hf.read(told, path, columns=["id", "text"], filter="id = 'k20'").collect()
    assert [tuple(row) for row in found] == [("k20", "2-20")]
    hf.update(told, path, "id = 'k20'", {"text": "'new'"})
    assert {row.text for row in hf.read(told, path).filter("id = 'k20'").collect()} == {"new"}
    assert SECRET_KEY not in repr(storage_settings(told, "/local")) + repr(storage_of(told, path))


def test_options_of_a_call_come_before_those_of_the_session(spark: Any, s3_server: S3Server) -> None:
    path = s3_server.path("said")
    hf.write(rows(spark, 0, 1), path, options(), storage_options=s3_server.options)
    assert hf.read(spark, path, storage_options=s3_server.options).count() == 20
    storage = Storage(path, s3_server.options)
    assert not reached_by_spark(spark, storage)
    assert storage_settings(spark, path) == {}
    own, reach = split_options({"hoodie.table.name": "t", "hudi_fast.storage.region": "r", "fs.s3a.endpoint": "e"})
    assert (own, reach) == ({"hoodie.table.name": "t"}, {"region": "r", "fs.s3a.endpoint": "e"})


@pytest.mark.smoke
def test_a_rebuild_overwrites_its_table_again(spark: Any, s3_server: S3Server) -> None:
    path, reach = s3_server.path("rebuilt"), s3_server.options
    for ts in (1, 2):
        settings = {**options(), "hoodie.datasource.write.operation": "bulk_insert"}
        hf.write(rows(spark, ts * 10, ts), path, settings, mode="overwrite", storage_options=reach)
    assert [row.ts for row in hf.read(spark, path, storage_options=reach).collect()] == [2] * 20


@pytest.mark.filterwarnings("ignore:The lock of .* could not be released")
@pytest.mark.parametrize("name", ["file", pytest.param("marker", marks=pytest.mark.long)])
def test_a_task_whose_credentials_expire_ends_the_write_and_the_next_writer_goes_on(
    spark: Any, s3_server: S3Server, name: str
) -> None:
    if s3_server.kind != "versitygw":
        pytest.skip("what is left over is looked for behind the server's back, which needs versitygw (Go builds it)")
    settings = {**options(), "hudi_fast.plan": "fused"}
    with http_faults(s3_server.url) as faults:
        reach, counted = s3_server.options_at(faults.url), s3_server.path(f"expired-counted-{name}")
        for ts in (1, 2):
            faults.arm()
            hf.write(rows(spark, 0, ts), counted, settings, storage_options=reach)
        puts = [number for number, one in enumerate(faults.asked) if one.startswith("PUT") and ".parquet" in one]
        at = puts[0] if name == "marker" else puts[len(puts) // 2]
        path = s3_server.path(f"expired-{name}")
        hf.write(rows(spark, 0, 1), path, settings, storage_options=reach)
        faults.arm(at, "expired", lasts=10_000)
        with pytest.raises(hf.CommitError, match="expired") as caught:
            hf.write(rows(spark, 0, 2), path, settings, storage_options=reach)
        assert path in str(caught.value)
        assert "storage_options" in str(caught.value)
        faults.arm()
        assert {row.ts for row in hf.read(spark, path, storage_options=reach).collect()} == {1}
        Storage(path, reach).delete_files([".hoodie/.locks/table_lock.json"])  # its lease would end in five minutes
        hf.write(rows(spark, 0, 2), path, settings, storage_options=reach)
        assert {row.ts for row in hf.read(spark, path, storage_options=reach).collect()} == {2}
        assert_tidy(s3_server.objects / s3_server.bucket / f"expired-{name}")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("plan", ["driver", "broadcast", "fused", "routed"])
def test_every_plan_writes_to_s3(plan: str, kind: str, told: Any, s3_server: S3Server) -> None:
    path = s3_server.path(f"{plan}-{kind}")
    settings = {**options(), "hoodie.datasource.write.table.type": kind, "hudi_fast.plan": plan}
    for ts in (1, 2, 3):
        assert hf.write(rows(told, ts * 10, ts), path, settings).plan == plan
    texts = {row.id: row.text for row in hf.read(told, path).collect()}
    assert texts == {f"k{n}": f"{min(n // 10, 3)}-{n}" for n in range(10, 50)}


@pytest.mark.long
def test_sources_and_sinks_reach_s3(told: Any, s3_server: S3Server, tmp_path: Any) -> None:
    path = s3_server.path("sources")
    hf.register_data_source(told)
    reach = {f"hudi_fast.storage.{name}": value for name, value in s3_server.options.items()}
    rows(told, 0, 1).write.format("hudi_fast").options(**options(), **reach).mode("append").save(path)
    assert told.read.format("hudi_fast").options(**reach).load(path).count() == 20
    hf.accelerate(told)
    try:
        rows(told, 10, 2).write.format("hudi").options(**options()).mode("append").save(path)
        assert told.read.format("hudi").load(path).count() == 30
        stream = told.readStream.format("hudi").load(path)
        target = s3_server.path("streamed")
        writer = stream.select("id", "part", "ts", "text").writeStream.format("hudi").options(**options())
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start(target)
        query.awaitTermination()
        assert told.read.format("hudi").load(target).count() == 30
    finally:
        hf.accelerate(told, False)
    neighbours = Storage(path.rpartition("/")[0], s3_server.options).list_dir("")
    assert not [one.name for one in neighbours if ".spool-" in one.name]
