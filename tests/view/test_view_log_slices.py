"""Which slice a log file belongs to, and which slices a query sees while services are planned."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_fast.errors import CorruptTableError
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.archive.timeline import ArchivedTimes
from hudi_fast.timeline.instants import Instant, State, Timeline
from hudi_fast.view.file_names import base_file_name, log_file_name
from hudi_fast.view.slices import FileSlice, TableView, base_slices, latest_slices

A = "11111111-1111-1111-1111-111111111111-0"
GROUP = ("p", A)


@dataclass(frozen=True)
class Folder:
    """A lister of one partition."""

    names: list[str] = field(default_factory=list)

    def partitions(self) -> list[str]:
        return ["p"]

    def files(self, partition: str) -> list[FileStat]:
        return [FileStat(f"{partition}/{name}", 7, 0, False) for name in self.names]


def base(instant: str) -> str:
    return base_file_name(A, "0-0-0", instant)


def log(instant: str, version: int = 1, token: str = "0-1-0") -> str:
    return log_file_name(A, instant, version, token)


def timeline(**completions: str | None) -> Timeline:
    """``t100="150"``: a delta commit requested at 100, complete at 150; None: under way."""
    return Timeline(
        tuple(
            Instant(name[1:], "deltacommit", State.INFLIGHT if done is None else State.COMPLETED, done)
            for name, done in sorted(completions.items())
        )
    )


def the_slice(view: TableView) -> FileSlice:
    (one,) = latest_slices(view, "p")
    return one


def parts(one: FileSlice) -> tuple[str | None, list[str]]:
    """Base instant of the base file, and names of the logs."""
    return None if one.base_file is None else one.base_file.instant, [log.name for log in one.log_files]


def old(line: Timeline, names: list[str], **more: object) -> TableView:
    return TableView(line, Folder(names), table_version=6, **more)  # type: ignore[arg-type]


def new(line: Timeline, names: list[str], **more: object) -> TableView:
    return TableView(line, Folder(names), table_version=9, **more)  # type: ignore[arg-type]


# ---- before version 8: a log file names its slice


def test_a_log_named_by_its_slice_goes_there() -> None:
    line = timeline(t100="101", t200="201", t300="301")
    names = [log("100"), log("100", 2), base("100"), base("200"), log("200", 10), log("200", 9)]
    assert parts(the_slice(old(line, names))) == ("200", [log("200", 9), log("200", 10)])
    assert parts(the_slice(old(line, names, as_of="199"))) == ("100", [log("100"), log("100", 2)])


def test_a_log_whose_base_file_is_gone_is_a_slice_of_its_own() -> None:
    one = the_slice(old(timeline(t100="101"), [log("100")]))
    assert parts(one) == (None, [log("100")])
    assert one.base_instant == "100"


def test_a_slice_that_a_write_under_way_begins_is_not_there() -> None:
    line = timeline(t100="101", t200=None)
    assert latest_slices(old(line, [log("200")]), "p") == []
    assert parts(the_slice(old(line, [base("100"), log("200")]))) == ("100", [])


def test_before_version_8_blocks_decide_and_not_names() -> None:
    line = timeline(t100="101", t200=None)
    assert parts(the_slice(old(line, [base("100"), log("100")]))) == ("100", [log("100")])


# ---- from version 8 on: a log file names its write


def test_a_log_goes_to_the_newest_slice_that_began_before_its_write_was_complete() -> None:
    line = timeline(t100="101", t150="250", t200="201", t210="220")
    names = [base("100"), base("200"), log("150"), log("210")]
    assert parts(the_slice(new(line, names))) == ("200", [log("150"), log("210")])
    line = timeline(t100="101", t150="180", t200="201", t210="220")
    assert parts(the_slice(new(line, names))) == ("200", [log("210")])


def test_logs_of_writes_that_did_not_complete_are_left_out() -> None:
    line = timeline(t100="101", t150=None, t160="170")
    assert parts(the_slice(new(line, [base("100"), log("150"), log("160"), log("155")]))) == ("100", [log("160")])
    assert latest_slices(new(line, [log("150")]), "p") == []


def test_a_group_of_logs_alone_is_one_slice() -> None:
    line = timeline(t100="101", t200="201")
    one = the_slice(new(line, [log("200"), log("100", 1, "0-2-0"), log("100", 1, "0-1-0")]))
    assert parts(one) == (None, [log("100", 1, "0-1-0"), log("100", 1, "0-2-0"), log("200")])
    assert one.base_instant == "100"


def test_looking_back_leaves_later_logs_out() -> None:
    line = timeline(t100="101", t200="201", t300="301")
    names = [base("100"), log("200"), log("300")]
    assert parts(the_slice(new(line, names, as_of="250"))) == ("100", [log("200")])
    assert parts(the_slice(new(line, names, as_of="100"))) == ("100", [])
    assert latest_slices(new(line, names, as_of="099"), "p") == []


def test_completion_times_of_another_length_are_not_compared() -> None:
    line = timeline(t100="20240101120000000", t150="20240101120001000", t200="20240101120002000")
    assert parts(the_slice(new(line, [base("100"), base("200"), log("150")]))) == ("200", [])


# ---- pending compactions


@pytest.mark.parametrize("version", [6, 9])
def test_a_pending_compaction_shows_what_was_there_and_what_came_since(version: int) -> None:
    line = Timeline(
        (
            Instant("100", "deltacommit", State.COMPLETED, "101"),
            Instant("150", "deltacommit", State.COMPLETED, "151"),
            Instant("200", "compaction", State.INFLIGHT),
            Instant("300", "deltacommit", State.COMPLETED, "301"),
        )
    )
    before, since = (log("150"), log("300")) if version > 6 else (log("100"), log("200"))
    view = TableView(
        line,
        Folder([base("100"), base("200"), before, since]),
        pending_compactions={GROUP: "200"},
        table_version=version,
    )
    one = the_slice(view)
    assert parts(one) == ("100", [before, since])
    assert one.base_instant == "200"
    assert [parts(each) for each in base_slices(view, "p")] == [("100", [])]
    without = TableView(line, Folder([base("100"), before]), pending_compactions={GROUP: "200"}, table_version=version)
    assert parts(the_slice(without)) == ("100", [before])


def test_a_query_from_before_the_compaction_does_not_know_of_it() -> None:
    line = Timeline(
        (
            Instant("100", "deltacommit", State.COMPLETED, "101"),
            Instant("200", "compaction", State.REQUESTED),
        )
    )
    one = the_slice(new(line, [base("100")], pending_compactions={GROUP: "200"}, as_of="150"))
    assert one.base_instant == "100"


# ---- read optimized


def test_base_slices_have_no_logs_and_groups_of_logs_alone_none() -> None:
    line = timeline(t100="101", t200="201", t300=None)
    view = new(line, [base("100"), base("200"), base("300"), log("200")])
    assert [parts(one) for one in base_slices(view, "p")] == [("200", [])]
    assert [parts(one) for one in base_slices(new(line, [base("100"), base("200")], as_of="150"), "p")] == [("100", [])]
    assert base_slices(new(line, [log("200")]), "p") == []
    assert base_slices(new(line, [base("100")], replaced={GROUP: "200"}), "p") == []


# ---- archived writes


def archive(tmp_path: Path, *, version: str | None = "2") -> ArchivedTimes:
    folder = tmp_path / "history"
    folder.mkdir()
    rows = pa.table({"instantTime": ["050", "060"], "completionTime": ["055", "250"], "action": ["deltacommit"] * 2})
    pq.write_table(rows, folder / "050_060_0.parquet")
    (folder / "070_080_0.parquet").write_bytes(b"not asked for")
    files = [{"fileName": name, "fileLen": 1} for name in ("050_060_0.parquet", "070_080_0.parquet")]
    (folder / "manifest_1").write_text("{}")
    (folder / "manifest_2").write_text(json.dumps({"files": files}))
    if version is not None:
        (folder / "_version_").write_text(version)
    return ArchivedTimes(Storage(tmp_path), "history")


def test_the_archive_says_when_old_writes_were_complete(tmp_path: Path) -> None:
    line = timeline(t200="201", t300="301")
    names = [base("040"), base("200"), log("050"), log("060")]
    assert parts(the_slice(new(line, names, archive=archive(tmp_path)))) == ("200", [log("060")])


def test_the_archive_is_not_read_for_logs_that_cannot_be_older_than_their_slice(tmp_path: Path) -> None:
    line = timeline(t200="201")
    nowhere = ArchivedTimes(archive(tmp_path).storage, "history")
    (tmp_path / "history" / "manifest_2").unlink()
    assert parts(the_slice(new(line, [base("040"), log("050")], archive=nowhere))) == ("040", [log("050")])
    with pytest.raises(CorruptTableError, match="manifest_2"):
        latest_slices(new(line, [base("040"), base("200"), log("050")], archive=nowhere), "p")


def test_without_a_version_file_the_newest_manifest_counts(tmp_path: Path) -> None:
    times = archive(tmp_path, version=None)
    assert times.completions({"050", "060", "065"}) == {"050": "055", "060": "250"}
    assert times.completions(set()) == {}
    with pytest.raises(CorruptTableError, match=r"070_080_0\.parquet"):
        times.completions({"075"})
    assert ArchivedTimes(Storage(tmp_path), "elsewhere").completions({"050"}) == {}
