"""Where a stream continues: positions in commits, and the arguments that replace them.

Modules: hudi_fast.streamer.position, hudi_fast.timeline.archive.timeline.
"""

from __future__ import annotations

import pytest

import hudi_fast as hf
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.streamer.position import Position, find_position, position_metadata, start_of
from hudi_fast.timeline.instants import load_timeline
from hudi_fast.view.table_state import commits_newest_first, load_state
from tests.support.small_tables import options, plain_rows

V1, V2 = "deltastreamer.checkpoint.", "streamer.checkpoint."


def found(path, name=None):
    storage = Storage(path)
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    return find_position(storage, config, load_timeline(storage, config), name)


def put(path, metadata, settings=None, rows=3):
    """A write whose commit stores some metadata."""
    for prefix in (V1, V2, "_"):
        own = {key: value for key, value in metadata.items() if key.startswith(prefix)}
        if own:
            prefixes = {"hoodie.datasource.write.commitmeta.key.prefix": prefix}
            hf.write(plain_rows(range(rows)), path, {**(settings or options()), **prefixes, **own})


@pytest.mark.parametrize(
    ("version", "keys"),
    [
        (6, [f"{V1}ignore_key", f"{V1}key", f"{V1}reset_key"]),
        (8, [f"{V1}ignore_key", f"{V2}key.v2", f"{V2}reset.key.v2"]),
        (9, [f"{V1}ignore_key", f"{V2}key.v2", f"{V2}reset.key.v2"]),
    ],
)
def test_the_version_of_the_table_decides_the_keys(version, keys):
    assert sorted(position_metadata("p", "c", "i", version)) == keys
    assert list(position_metadata("p", None, None, version).values()) == ["p"]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_newest_commit_with_a_position_counts(tmp_path, kind):
    path, settings = tmp_path / "t", options() | {"hoodie.datasource.write.table.type": kind}
    put(path, {f"{V1}key": "old"}, settings)
    put(path, {f"{V2}key.v2": "new"}, settings)
    hf.write(plain_rows(range(1)), path, settings)
    assert found(path) == Position("new", by_completion=True)


def test_a_table_without_a_stream_has_no_position(tmp_path):
    hf.write(plain_rows(range(3)), tmp_path / "t", options() | {"_hudi_fast_streamer": "x"})
    assert found(tmp_path / "t") is None


def test_positions_of_named_streams_are_apart(tmp_path):
    path = tmp_path / "t"
    put(path, position_metadata("a:1", None, None, 9, "a"))
    put(path, position_metadata("b:1", "c", "i", 9, "b"))
    put(path, position_metadata("x:1", None, None, 9))
    assert found(path, "a") == Position("a:1", by_completion=True)
    assert found(path, "b") == Position("b:1", "c", "i", True)
    assert found(path).text == "x:1"
    assert found(path, "none") is None


def test_a_position_is_found_in_the_archive(tmp_path):
    path = tmp_path / "t"
    put(path, {f"{V2}key.v2": "kept"})
    small = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    for number in range(5):
        hf.write(plain_rows(range(number + 1), ts=number), path, {**options(), **small})
    active = [commit.extra_metadata for _, commit in commits_newest_first(load_state(Storage(path)))]
    assert not any(f"{V2}key.v2" in extra for extra in active)
    assert found(path).text == "kept"


def test_a_table_that_became_merge_on_read_continues_from_its_delta_commits_only(tmp_path):
    path = tmp_path / "t"
    settings = options() | {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    put(path, {f"{V2}key.v2": "delta"}, settings)
    compacted = {**settings, "hoodie.compact.inline.max.delta.commits": "1", V2 + "key.v2": "of the compaction"}
    hf.HudiTable.open(path).services.compact(compacted | {"hoodie.datasource.write.commitmeta.key.prefix": V2})
    assert found(path).text == "delta"


@pytest.mark.parametrize(
    ("position", "checkpoint", "ignored", "start"),
    [
        (None, None, None, None),
        (None, "c", None, "c"),
        (None, None, "i", None),
        (Position("p"), None, None, "p"),
        (Position("p"), "c", None, "c"),  # given for the first time
        (Position("p", "c"), "c", None, "p"),  # it counted in the turn before
        (Position("p", "c"), "d", None, "d"),
        (Position("p"), None, "i", None),
        (Position("p", None, "i"), None, "i", "p"),
        (Position("p"), "c", "i", None),
    ],
)
def test_arguments_count_once(position, checkpoint, ignored, start):
    assert start_of(position, checkpoint, ignored, "t") == start


def test_a_turn_that_stored_no_position_cannot_be_continued():
    with pytest.raises(hf.ConfigError, match=r"t began at 'c' and stored no position.*--ignore-checkpoint"):
        start_of(Position(None, "c"), "c", None, "t")
