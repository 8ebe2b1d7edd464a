"""Files with bytes of their predecessor: Apache Hudi reads them, skips by their statistics and writes on.

Module: hudi_fast.writing.patched_file.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hudi_fast.writing import patched_file
from tests.interop.sides import Sides, after_delete, after_upsert, trip_options, trips

GZIP = {"hoodie.parquet.compression.codec": "gzip"}
SMALL_GROUPS = {
    "hoodie.parquet.block.size": 4096,
    "hoodie.parquet.page.size": 1024,
    "hoodie.parquet.max.file.size": 400_000,
    "hoodie.copyonwrite.record.size.estimate": 100,
}
ROWS = 2_000


def newest_file(path: Path) -> Path:
    return max(path.rglob("*.parquet"), key=lambda file: file.name.rpartition("_")[2])


def chunks(file: Path) -> list[bytes]:
    """The encoded record keys of each row group."""
    content, metadata, found = file.read_bytes(), pq.read_metadata(file), []
    for number in range(metadata.num_row_groups):
        chunk = metadata.row_group(number).column(2)
        start = min(at for at in (chunk.data_page_offset, chunk.dictionary_page_offset) if at)
        found.append(content[start : start + chunk.total_compressed_size])
    return found


@pytest.mark.parametrize(
    ("peer", "version", "first"),
    [("hudi_12", 9, "us"), pytest.param("hudi_12", 9, "hudi", marks=pytest.mark.long), ("hudi_015", 6, "us")],
)
def test_hudi_reads_copied_row_groups_and_writes_on(request, tmp_path, peer, version, first):
    options = {**trip_options(version), **SMALL_GROUPS, **GZIP}
    sides = Sides(request.getfixturevalue(peer), tmp_path / "trips", options)
    rows = trips(range(ROWS), cities=1)
    write = sides.we_write if first == "us" else sides.hudi_writes
    write(rows, "bulk_insert")
    old = newest_file(sides.path)
    assert len(chunks(old)) > 4

    new = trips(range(700, 720), ts=5, cities=1, note="second")
    rows = after_upsert(rows, new)
    sides.we_write(new)
    copied = set(chunks(old)) & set(chunks(newest_file(sides.path)))
    assert len(copied) >= len(chunks(old)) - 2
    sides.agree(rows)

    gone = trips(range(3), cities=1).select(["id", "city"])
    rows = after_delete(rows, gone)
    sides.table.delete(gone)
    more = trips(range(ROWS, ROWS + 30), ts=5, cities=1)
    rows = after_upsert(rows, more)
    sides.we_write(more)
    sides.agree(rows)

    again = trips(range(690, 730), ts=9, cities=1, note="third")
    rows = after_upsert(rows, again)
    sides.hudi_writes(again)
    sides.agree(rows)
    assert sides.table.services.validate().differences.num_rows == 0


@pytest.mark.parametrize(
    ("peer", "version", "first", "kind"),
    [
        pytest.param("hudi_12", 9, "us", "COPY_ON_WRITE", marks=pytest.mark.long),
        ("hudi_12", 9, "hudi", "MERGE_ON_READ"),
        ("hudi_015", 6, "hudi", "COPY_ON_WRITE"),
        pytest.param("hudi_015", 6, "us", "MERGE_ON_READ", marks=pytest.mark.long),
    ],
)
def test_hudi_reads_row_groups_with_copied_keys_and_writes_on(
    request, tmp_path, monkeypatch, peer, version, first, kind
):
    monkeypatch.setattr(patched_file, "_LEAST_GROUP", 0)
    options = {**trip_options(version), **SMALL_GROUPS, **GZIP, "hoodie.datasource.write.table.type": kind}
    sides = Sides(request.getfixturevalue(peer), tmp_path / "trips", options)
    rows = trips(range(ROWS), cities=1)
    write = sides.we_write if first == "us" else sides.hudi_writes
    write(rows, "bulk_insert")
    old = newest_file(sides.path)

    new = trips(range(0, ROWS, 3), ts=5, cities=1, note="second")
    rows = after_upsert(rows, new)
    sides.we_write(new)
    if kind == "MERGE_ON_READ":
        sides.table.services.compact(options=GZIP)
    made = newest_file(sides.path)
    assert made != old
    assert set(chunks(old)) <= set(chunks(made))
    sides.agree(rows)

    again = trips(range(0, ROWS + 50, 2), ts=9, cities=1, note="third")
    rows = after_upsert(rows, again)
    sides.hudi_writes(again)
    sides.agree(rows)
    more = trips(range(0, ROWS + 90, 5), ts=12, cities=1, note="fourth")
    rows = after_upsert(rows, more)
    sides.we_write(more)
    sides.agree(rows)
    assert sides.table.services.validate().differences.num_rows == 0
