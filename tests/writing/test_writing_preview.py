"""Previews of writes in one process: the plan and the rows of each partition; nothing is written."""

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.errors import InvalidDataError, TableExistsError, UnsupportedFeatureError

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}


def rows(parts, ids=None):
    return pa.table({"id": ids or [f"k{at}" for at in range(len(parts))], "part": parts, "ts": [1] * len(parts)})


def files_below(path):
    return sorted(str(one.relative_to(path)) for one in path.rglob("*"))


def test_a_new_table_is_not_created(tmp_path):
    preview = hf.plan_write(rows(["b", "a", "b"]), tmp_path / "t", OPTIONS)
    assert (preview.operation, preview.plan) == ("upsert", "local")
    assert list(preview.partitions.items()) == [("a", 1), ("b", 2)]
    assert preview.input_bytes > 0
    assert preview.tasks is None
    assert not (tmp_path / "t").exists()


def test_a_table_is_left_as_it_is(tmp_path):
    hf.write(rows(["a", "b"]), tmp_path / "t", OPTIONS)
    before = files_below(tmp_path / "t")
    preview = hf.plan_write(rows(["c"]), tmp_path / "t", OPTIONS)
    assert preview.partitions == {"c": 1}
    assert hf.plan_write(rows(["c"]), tmp_path / "t", OPTIONS, mode="overwrite").plan == "local"
    ignored = hf.plan_write(rows(["c"]), tmp_path / "t", OPTIONS, mode="ignore")
    assert (ignored.plan, ignored.partitions) == ("none", None)
    assert files_below(tmp_path / "t") == before


def test_what_a_write_refuses_a_preview_refuses(tmp_path):
    hf.write(rows(["a"]), tmp_path / "t", OPTIONS)
    with pytest.raises(InvalidDataError, match="null"):
        hf.plan_write(rows(["a", "b"], ["k", None]), tmp_path / "t", OPTIONS)
    with pytest.raises(TableExistsError):
        hf.plan_write(rows(["a"]), tmp_path / "t", OPTIONS, mode="errorifexists")
    bootstrap = {**OPTIONS, "hoodie.datasource.write.operation": "bootstrap"}
    with pytest.raises(UnsupportedFeatureError, match="preview"):
        hf.plan_write(rows(["a"]), tmp_path / "u", {**bootstrap, "hoodie.bootstrap.base.path": str(tmp_path)})
