"""Indexes that are built by tasks of Spark are those that threads build."""

import pytest

import hudi_fast as hf
from hudi_fast.metadata_table.read import scan
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.storage.base import Storage
from tests.support.small_tables import options, plain_rows


def located(path, partition):
    table = metadata_of(open_state(Storage(path)))
    rows = scan(table, partition).to_pylist()
    return sorted((row["key"], row.get("partition"), row.get("file_id")) for row in rows)


@pytest.mark.smoke("MERGE_ON_READ")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_tasks_build_what_threads_build(spark, tmp_path, kind):
    settings = {**options(), "hoodie.datasource.write.table.type": kind}
    groups = {"hoodie.metadata.global.record.level.index.min.filegroup.count": 3}
    hf.write(plain_rows(range(30)), tmp_path, settings)
    hf.write(plain_rows(range(20, 40), ts=2, text="b"), tmp_path, settings)
    services = hf.HudiTable.open(tmp_path).services
    services.index("secondary_index", ["text"], name="words", options=groups)
    by_threads = {name: located(tmp_path, name) for name in ("record_index", "secondary_index_words")}
    for name in ("words", "record_index"):
        services.drop_index(name)
    result = services.index("secondary_index", ["text"], name="words", options=groups, spark=spark)
    assert result.partitions == ("record_index", "secondary_index_words")
    assert result.records == 80
    assert {name: located(tmp_path, name) for name in by_threads} == by_threads
    assert services.validate().ok


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_tasks_refuse_a_value_that_a_secondary_index_cannot_hold(spark, tmp_path, kind):
    index = {
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.metadata.index.secondary.column": "text",
    }
    settings = {**options(), "hoodie.datasource.write.table.type": kind}
    hf.write(plain_rows(range(6)), tmp_path, {**settings, **index})
    table, said = hf.HudiTable.open(tmp_path), r"'text' .*secondary_index_text.* 32767 bytes"
    before = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    long = spark.createDataFrame(plain_rows([1, 7])).selectExpr(
        "id", "part", "ts + 1 AS ts", "repeat('y', 32767) AS text"
    )
    for operation in ("upsert", "bulk_insert"):
        with pytest.raises(hf.InvalidDataError, match=said):
            hf.write(long, tmp_path, {**settings, "hoodie.datasource.write.operation": operation})
    with pytest.raises(hf.InvalidDataError, match=said):
        hf.update(spark, tmp_path, "ts = 1", {"text": "repeat('y', 32767)"})
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == before
    assert not table.services.validate().differences.num_rows
