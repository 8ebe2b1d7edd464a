"""Positions of a streamer, between this library and real Apache Hudi: HoodieStreamer continues from these commits."""

from __future__ import annotations

import json
import os

import pytest

import hudi_fast as hf
from tests.support.small_tables import options, plain_rows, table_rows

V1, V2 = "deltastreamer.checkpoint.", "streamer.checkpoint."
POSITION = "trips,0:120,1:98"


class Messages:
    """A source with a position of its own choice."""

    def __init__(self, rows, position):
        self._rows, self._position, self.asked = rows, position, []

    def fetch(self, position, limit):
        from hudi_fast.streamer.sources.source import Fetched

        self.asked.append(position)
        return Fetched(self._rows.to_reader(), self._position)

    def committed(self, position):
        pass

    def close(self):
        pass


def streamer(path, source, given, **arguments):
    return hf.Streamer(given, source=source, target_base_path=str(path), **arguments)


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        pytest.param("MERGE_ON_READ", "9", marks=pytest.mark.smoke),
        pytest.param("COPY_ON_WRITE", "6", marks=pytest.mark.slow),
    ],
)
def test_apache_hudi_reads_the_position_and_writes_the_next_one(hudi_12, tmp_path, kind, version):
    path, given = tmp_path / "t", options(table_version=version)
    given["hoodie.datasource.write.table.type"] = kind
    first = streamer(path, Messages(plain_rows(range(3), ts=1), POSITION), given, checkpoint="c", ignore_checkpoint="i")
    assert [turn.position for turn in first.run()] == [POSITION]
    assert hudi_12.checkpoint(path) == {"position": POSITION, "reset": "c", "ignored": "i"}

    key = f"{V1}key" if version == "6" else f"{V2}key.v2"
    theirs = {"hoodie.datasource.write.commitmeta.key.prefix": key, key: "trips,0:130,1:99"}
    theirs["hoodie.write.auto.upgrade"] = "false"
    hudi_12.write(plain_rows(range(2, 5), ts=2), path, {**given, **theirs})
    hudi_12.write(plain_rows(range(1), ts=3), path, given)  # another writer stores no position
    source = Messages(plain_rows(range(4, 6), ts=4), "trips,0:140,1:99")
    assert next(streamer(path, source, given).run()).inserts >= 1
    assert source.asked == ["trips,0:130,1:99"]
    assert hudi_12.checkpoint(path) == {"position": "trips,0:140,1:99", "reset": None, "ignored": None}
    assert len(table_rows(path)) == hudi_12.read(path).num_rows == 6


@pytest.mark.slow
def test_a_release_that_knows_one_kind_of_position_reads_it(hudi_015, tmp_path):
    path, given = tmp_path / "t", options(table_version="6")
    list(streamer(path, Messages(plain_rows(range(3), ts=1), POSITION), given).run())
    assert hudi_015.checkpoint(path)["position"] == POSITION
    theirs = {"hoodie.datasource.write.commitmeta.key.prefix": V1, f"{V1}key": "trips,0:130"}
    hudi_015.write(plain_rows(range(2), ts=2), path, {**given, **theirs})
    source = Messages(plain_rows(range(9), ts=3), "trips,0:131")
    list(streamer(path, source, given).run())
    assert source.asked == ["trips,0:130"]


@pytest.mark.slow
def test_a_stream_of_a_folder_goes_on_where_apache_hudi_stopped(hudi_12, tmp_path):
    path, folder, given = tmp_path / "t", tmp_path / "in", options()
    folder.mkdir()
    for number in (1, 2):
        rows = plain_rows(range(number * 3), ts=number).to_pylist()
        file = folder / f"{number}.json"
        file.write_text("\n".join(json.dumps(row) for row in rows))
        os.utime(file, (1_790_000_000 + number, 1_790_000_000 + number))
    key = f"{V2}key.v2"
    theirs = {"hoodie.datasource.write.commitmeta.key.prefix": key, key: "1790000001000"}
    hudi_12.write(plain_rows(range(3), ts=1), path, {**given, **theirs})
    properties = {**given, "hoodie.streamer.source.dfs.root": str(folder)}
    feeder = hf.Streamer(properties, source_class="JsonDFSSource", target_base_path=str(path))
    assert sum(turn.inserts for turn in feeder.run()) >= 3
    assert len(table_rows(path)) == 6
