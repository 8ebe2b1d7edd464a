"""Commits of another Hudi table become the rows of turns."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.errors import ConfigError, HudiError, TableNotFoundError
from hudi_fast.storage.base import Storage
from hudi_fast.streamer.settings import StreamSettings
from hudi_fast.streamer.sources.hudi_table import HudiTableSource, _before
from hudi_fast.streamer.streamer import Streamer
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import options, plain_rows, rows_of, table_rows

FIRST, NEWEST = "READ_UPTO_LATEST_COMMIT", "READ_LATEST"
VERSIONS = (6, 9)
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
TYPE_KEY = "hoodie.datasource.write.table.type"
FALLBACK_KEY = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"


def source(
    path: Path, version: int = 9, strategy: str | None = FIRST, fallback: bool = False, **given: Any
) -> HudiTableSource:
    """A source of the commits of a table, for a table of a version."""
    properties = {f"hoodie.streamer.source.hoodieincr.{key}": value for key, value in given.items()}
    if strategy is not None:
        properties["hoodie.streamer.source.hoodieincr.missing.checkpoint.strategy"] = strategy
    properties["hoodie.streamer.source.hoodieincr.path"] = str(path)
    if fallback:
        properties[FALLBACK_KEY] = "true"
    settings = StreamSettings.of(properties, {"target-base-path": "/t", "source-class": "HoodieIncrSource"})
    return HudiTableSource(settings, version, None)


def write(path: Path, numbers: Any, ts: int, version: int = 9, kind: str = "COPY_ON_WRITE", **given: str) -> None:
    settings = options(table_version=str(version)) | {TYPE_KEY: kind} | given
    hf.write(plain_rows(numbers, ts=ts, text=f"v{ts}-"), path, settings)


COMMITS = ((range(3), 1), (range(2, 5), 2), (range(1), 3), (range(6, 8), 4))
"""Numbers and times of the rows of four commits, of which two change rows."""

ONE, TWO, THREE, FOUR = (rows_of(plain_rows(numbers, ts=ts, text=f"v{ts}-")) for numbers, ts in COMMITS)
ALL = ONE | TWO | THREE | FOUR

Tables = Callable[[str, int], Path]


@pytest.fixture(scope="module")
def table_of(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Makes a table of :data:`COMMITS` of a type and version, which tests must not change."""

    @cache
    def made(kind: str, version: int) -> Path:
        path = tmp_path_factory.mktemp("tables") / "s"
        for numbers, ts in COMMITS:
            write(path, numbers, ts, version, kind)
        return path

    return made


def turns(
    stream: HudiTableSource, position: str | None = None, limit: int | None = None
) -> list[dict[str, tuple[Any, ...]]]:
    """The rows of each turn, until nothing is new."""
    made = []
    while (fetched := stream.fetch(position, limit)).rows is not None:
        made.append(rows_of(fetched.rows.read_all()))
        assert fetched.position > (position or "")
        position = fetched.position
        assert len(made) < 20
    assert fetched.position == position
    return made


def folded(of_turns: list[dict[str, tuple[Any, ...]]]) -> dict[str, tuple[Any, ...]]:
    """The rows of a table that upserts turns."""
    return {key: row for rows in of_turns for key, row in rows.items()}


# ---- turns


@pytest.mark.parametrize("fed", VERSIONS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_turns_of_one_commit_give_the_rows_of_each_and_together_those_of_the_table(table_of, kind, version, fed):
    assert turns(source(table_of(kind, version), fed, num_instants="1")) == [ONE, TWO, THREE, FOUR]
    assert table_rows(table_of(kind, version)) == ALL


@pytest.mark.parametrize("fed", VERSIONS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_turn_of_several_commits_gives_the_newest_row_of_each_key(table_of, version, fed):
    path = table_of("MERGE_ON_READ", version)
    assert turns(source(path, fed, num_instants="2")) == [ONE | TWO, THREE | FOUR]
    assert turns(source(path, fed, num_instants="3")) == [ONE | TWO | THREE, FOUR]
    assert turns(source(path, fed)) == [ALL]  # five by default


@pytest.mark.parametrize(("limit", "expected"), [(3, [ONE | TWO | THREE, FOUR]), (0, [ONE, TWO, THREE, FOUR])])
def test_a_limit_takes_the_place_of_the_number_of_commits_and_a_turn_has_one_at_least(table_of, limit, expected):
    assert turns(source(table_of("COPY_ON_WRITE", 9), num_instants="2"), limit=limit) == expected


@pytest.mark.parametrize("fed", VERSIONS)
@pytest.mark.parametrize("version", VERSIONS)
def test_commits_that_come_later_are_read_in_the_next_turn(tmp_path, version, fed):
    path = tmp_path / "s"
    write(path, range(3), 1, version)
    stream = source(path, fed)
    first = stream.fetch(None, None)
    assert sorted(rows_of(first.rows.read_all())) == ["k00000", "k00001", "k00002"]
    assert stream.fetch(first.position, None).rows is None
    write(path, range(2, 4), 2, version)
    assert turns(stream, first.position) == [rows_of(plain_rows(range(2, 4), ts=2, text="v2-"))]


def test_the_same_position_gives_the_same_rows_although_commits_have_come_since(tmp_path):
    path = tmp_path / "s"
    for ts in (1, 2):
        write(path, range(ts, 3), ts, kind="MERGE_ON_READ")
    stream = source(path, num_instants="1")
    position = stream.fetch(None, None).position
    before = stream.fetch(position, None)
    rows = rows_of(before.rows.read_all())
    write(path, range(9), 9, kind="MERGE_ON_READ")
    after = stream.fetch(position, None)
    assert (rows_of(after.rows.read_all()), after.position) == (rows, before.position)


@pytest.mark.parametrize("version", VERSIONS)
def test_positions_are_requested_times_for_a_table_of_version_6_and_completion_times_for_version_9(table_of, version):
    path = table_of("COPY_ON_WRITE", version)
    newest = load_state(Storage(path)).timeline.writes()[-1]
    by_request = source(path, 6).fetch(None, None).position
    assert by_request == newest.requested
    by_completion = source(path, 9).fetch(None, None).position
    assert by_completion == (newest.completion or newest.requested)
    assert version == 6 or by_completion != by_request


def test_rows_have_no_meta_columns_and_the_types_of_the_table(tmp_path):
    path = tmp_path / "s"
    write(path, range(1), 1)
    made = source(path).fetch(None, None).rows.read_all()
    assert made.schema.remove_metadata() == pa.schema(
        [("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("text", pa.string())]
    )


def test_columns_that_a_later_commit_adds_are_null_in_rows_before_it(tmp_path):
    path = tmp_path / "s"
    write(path, range(2), 1)
    more = plain_rows(range(1, 3), ts=2).append_column("new", pa.array([5, 6]))
    hf.write(more, path, options())
    made = source(path).fetch(None, None).rows.read_all().sort_by("id")
    assert made["new"].to_pylist() == [None, 5, 6]


def test_deleted_rows_are_not_passed_on_and_the_stream_goes_on_behind_them(tmp_path):
    path = tmp_path / "s"
    write(path, range(4), 1)
    hf.write(plain_rows([1], ts=2), path, options(operation="delete"))
    write(path, [5], 3)
    made = turns(source(path, num_instants="1"))
    assert [sorted(rows) for rows in made if rows] == [["k00000", "k00001", "k00002", "k00003"], ["k00005"]]


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", VERSIONS)
def test_services_add_no_rows(tmp_path, version):
    path = tmp_path / "s"
    for ts in (1, 2):
        write(path, range(ts), ts, version, "MERGE_ON_READ")
    stream = source(path, num_instants="1")
    position = stream.fetch(None, 9).position
    hf.HudiTable.open(path).services.compact()
    assert folded(turns(stream, position)) == {}
    write(path, [9], 9, version, "MERGE_ON_READ")
    assert folded(turns(stream, position)) == rows_of(plain_rows([9], ts=9, text="v9-"))
    assert folded(turns(stream)) == table_rows(path)


# ---- without a position


@pytest.mark.parametrize("fed", VERSIONS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_stream_may_begin_with_the_newest_commit(table_of, kind, version, fed):
    assert turns(source(table_of(kind, version), fed, NEWEST)) == [FOUR]


@pytest.mark.parametrize("strategy", [None, FIRST, NEWEST])
def test_the_old_key_for_the_newest_commit_wins_over_the_strategy(table_of, strategy):
    path = table_of("COPY_ON_WRITE", 9)
    assert turns(source(path, 9, strategy, read_latest_on_missing_ckpt="true")) == [FOUR]


def test_the_strategy_may_have_any_case(table_of):
    assert turns(source(table_of("COPY_ON_WRITE", 9), 9, "read_latest")) == [FOUR]


@pytest.mark.parametrize("given", [{}, {"read_latest_on_missing_ckpt": "false"}])
def test_a_new_stream_without_a_strategy_is_refused_with_both(table_of, given):
    with pytest.raises(ConfigError, match=f"has no position yet. .*{FIRST} to begin with its first.*{NEWEST} to begin"):
        source(table_of("COPY_ON_WRITE", 9), strategy=None, **given).fetch(None, None)


@pytest.mark.parametrize("strategy", [FIRST, NEWEST, None])
def test_a_strategy_does_not_matter_once_there_is_a_position(table_of, strategy):
    path = table_of("COPY_ON_WRITE", 9)
    position = source(path).fetch(None, 1).position
    assert turns(source(path, strategy=strategy, num_instants="1"), position) == [TWO, THREE, FOUR]


@pytest.mark.parametrize("strategy", [FIRST, NEWEST])
@pytest.mark.parametrize("fed", VERSIONS)
def test_a_table_without_commits_has_nothing_until_one_comes(tmp_path, strategy, fed):
    path = tmp_path / "s"
    hf.HudiTable.create(path, plain_rows([]).schema, options())
    stream = source(path, fed, strategy)
    assert stream.fetch(None, None) == stream.fetch(None, None)
    assert stream.fetch(None, None).rows is None
    write(path, range(2), 1)
    assert turns(stream) == [table_rows(path)]


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        ("20240501120000000", "20240501115959999"),
        ("20240301000000000", "20240229235959999"),
        ("20240501120000001", "20240501120000000"),
        ("20240501120000", "20240501115959"),
        ("20250101000000", "20241231235959"),
    ],
)
def test_the_time_before_an_instant_is_a_time(instant, expected):
    assert _before(instant) == expected


def test_a_new_stream_may_begin_with_a_commit_of_a_full_minute(tmp_path):
    path = tmp_path / "s"
    write(path, range(2), 1, 6)
    (written,) = load_state(Storage(path)).timeline.writes()
    full = f"{written.requested[:12]}00000"
    for one in [*(path / ".hoodie").glob(f"{written.requested}.*")]:
        one.rename(one.with_name(one.name.replace(written.requested, full)))
    assert source(path, 6, NEWEST).fetch(None, None).position == full


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_position_whose_files_were_cleaned_is_told_and_rows_are_not_left_out_in_silence(tmp_path, version):
    path = tmp_path / "s"
    few = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    write(path, range(3), 1, version)
    position = source(path).fetch(None, None).position
    for ts in range(2, 5):
        write(path, [ts % 3], ts, version, **few)
    with pytest.raises(ConfigError, match=f"have been cleaned.* set {re.escape(FALLBACK_KEY)}=true"):
        turns(source(path, num_instants="1"), position)
    made = folded(turns(source(path, num_instants="1", fallback=True), position))
    assert made == {key: row for key, row in table_rows(path).items() if row[1] > 1}


# ---- wrong settings and tables


def test_the_path_of_the_table_is_required():
    settings = StreamSettings.of({}, {"target-base-path": "/t", "source-class": "HoodieIncrSource"})
    with pytest.raises(
        ConfigError, match=r"HoodieIncrSource needs the property hoodie\.streamer\.source\.hoodieincr\.path"
    ):
        HudiTableSource(settings, 9, None)


@pytest.mark.parametrize("number", ["0", "-1", "all", "1.5", ""])
def test_the_number_of_commits_of_a_turn_is_one_or_more(tmp_path, number):
    with pytest.raises(ConfigError, match=f"num_instants is a number, 1 or more; got '{re.escape(number)}'"):
        source(tmp_path, num_instants=number)


def test_another_strategy_is_refused_with_those_that_there_are(tmp_path):
    with pytest.raises(ConfigError, match=f"is one of {NEWEST}, {FIRST}; got EARLIEST"):
        source(tmp_path, strategy="earliest")
    with pytest.raises(ConfigError, match="read_latest_on_missing_ckpt is true or false; got 'maybe'"):
        source(tmp_path, read_latest_on_missing_ckpt="maybe")


def test_a_folder_without_a_table_is_named(tmp_path):
    with pytest.raises(TableNotFoundError, match="nothing"):
        source(tmp_path / "nothing").fetch(None, None)


@pytest.mark.parametrize("position", ["topic,0:5", "now", "12"])
def test_a_position_that_is_no_time_is_refused(table_of, position):
    with pytest.raises(HudiError, match=position):
        source(table_of("COPY_ON_WRITE", 9)).fetch(position, None)


# ---- a table that is fed


@pytest.mark.slow(but="COPY_ON_WRITE-9-9")
@pytest.mark.parametrize("fed", VERSIONS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_of_several_turns_gives_the_rows_of_the_source_table(table_of, tmp_path, kind, version, fed):
    path, target = table_of(kind, version), tmp_path / "t"
    properties = options(table_version=str(fed)) | {
        "hoodie.streamer.source.hoodieincr.path": str(path),
        "hoodie.streamer.source.hoodieincr.missing.checkpoint.strategy": FIRST,
        "hoodie.streamer.source.hoodieincr.num_instants": "1",
    }
    made = []
    for _ in range(10):
        stream = Streamer(properties, source_class="HoodieIncrSource", target_base_path=target, table_type=kind)
        made.append(stream.turn())
        if not made[-1].instant:
            break
    assert [turn.inserts + turn.updates for turn in made] == [3, 3, 1, 2, 0]
    assert table_rows(target) == table_rows(path)
    assert load_state(Storage(target)).config.version == fed
