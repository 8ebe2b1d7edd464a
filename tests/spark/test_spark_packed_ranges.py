"""Packed column ranges are the ranges that were packed, on the way to the driver as well."""

import pickle
import zlib

import pyarrow as pa

from hudi_fast.formats.parquet.column_ranges import ranges_of_rows
from hudi_fast.spark.writing.tasks import Answer, PackedRanges, answers
from hudi_fast.timeline.commit_metadata import WriteStat

RANGES = ranges_of_rows(pa.table({"id": [3, 1, None], "text": ["b", "a", "c"], "empty": pa.nulls(3, pa.string())}))


def test_a_packed_mapping_is_the_mapping():
    packed = pickle.loads(pickle.dumps(PackedRanges(RANGES)))
    assert dict(packed.items()) == dict(packed) == dict(RANGES)
    assert packed["id"].low.as_py() == 1
    assert len(packed) == 3
    assert "nope" not in packed


def test_answers_of_tasks_have_packed_ranges():
    stat = WriteStat(file_id="f", path="p/f", column_ranges=RANGES)
    without = WriteStat(file_id="g", path="p/g")
    (batch,) = answers(None, lambda _: Answer([stat, without]))([])
    found = pickle.loads(zlib.decompress(batch.column(0)[0].as_py()))
    assert isinstance(found.stats[0].column_ranges, PackedRanges)
    assert dict(found.stats[0].column_ranges) == dict(RANGES)
    assert found.stats[1].column_ranges is None
