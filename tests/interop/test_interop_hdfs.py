"""hudi_fast and real Apache Hudi 1.2.0 take turns at a table on HDFS."""

from __future__ import annotations

from typing import Any

import pytest

import hudi_fast as hf
from tests.peer.client import RealHudi
from tests.servers.hdfs import HdfsCluster
from tests.support.small_tables import options, plain_rows, table_rows


def texts(rows: Any) -> dict[str, str]:
    return dict(zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True))


@pytest.mark.parametrize("kind", ["MERGE_ON_READ"])
def test_both_write_a_table_on_hdfs_in_turn(kind: str, hdfs: HdfsCluster, hudi_12: RealHudi) -> None:
    path, settings = hdfs.path(f"turns-{kind}"), {**options(), "hoodie.datasource.write.table.type": kind}
    hf.write(plain_rows(range(6), ts=1, text="a"), path, settings)
    hf.write(plain_rows(range(2), ts=2, text="b"), path, settings)
    ours = {row[0]: row[2] for row in [(key, *value[1:]) for key, value in table_rows(path).items()]}
    assert texts(hudi_12.read(path)) == ours
    hudi_12.write(plain_rows(range(1, 9), ts=3, text="c"), path, settings)
    theirs = texts(hudi_12.read(path))
    assert len(theirs) == 9
    assert texts(hf.HudiTable.open(path).to_arrow(["id", "text"])) == theirs
    table = hf.HudiTable.open(path)
    table.services.compact(options=settings)
    table.upsert(plain_rows([0], ts=4, text="d"), settings)
    assert texts(hudi_12.read(path)) == texts(table.to_arrow(["id", "text"])) == {**theirs, "k00000": "d0"}
    assert table.services.validate().differences.num_rows == 0
