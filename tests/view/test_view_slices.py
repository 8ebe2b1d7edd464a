"""Which files of a folder a snapshot sees."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from hudi_fast.storage.base import FileStat
from hudi_fast.timeline.instants import Instant, State, Timeline
from hudi_fast.view.file_names import BaseFile, LogFile, base_file_name, log_file_name, parse_base_file, parse_log_file
from hudi_fast.view.slices import FileSlice, TableView, latest_slices

A = "11111111-1111-1111-1111-111111111111-0"
B = "22222222-2222-2222-2222-222222222222-0"


@dataclass(frozen=True)
class Folder:
    """A lister of one partition."""

    names: list[str] = field(default_factory=list)

    def partitions(self) -> list[str]:
        return ["p"]

    def files(self, partition: str) -> list[FileStat]:
        return [FileStat(f"{partition}/{name}", 7, 0, False) for name in self.names] if partition == "p" else []


def base(file_id: str, time: str, token: str = "0-0-0") -> str:
    return base_file_name(file_id, token, time)


def timeline(**states: State) -> Timeline:
    return Timeline(
        tuple(
            Instant(name[1:], "commit", state, "900" if state is State.COMPLETED else None)
            for name, state in sorted(states.items())
        )
    )


DONE = timeline(t100=State.COMPLETED, t200=State.COMPLETED, t300=State.COMPLETED)


def seen(view: TableView) -> dict[str, str]:
    return {one.file_id: one.base_file.instant for one in latest_slices(view, "p") if one.base_file is not None}


def test_the_newest_version_of_each_file_group_counts() -> None:
    folder = Folder([base(A, "100"), base(A, "300"), base(A, "200"), base(B, "200")])
    assert seen(TableView(DONE, folder)) == {A: "300", B: "200"}
    assert [one.file_id for one in latest_slices(TableView(DONE, folder), "p")] == sorted([A, B])
    assert latest_slices(TableView(DONE, folder), "elsewhere") == []


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_files_of_a_write_under_way_are_not_there(state: State) -> None:
    view = TableView(
        timeline(t100=State.COMPLETED, t200=state), Folder([base(A, "100"), base(A, "200"), base(B, "200")])
    )
    assert seen(view) == {A: "100"}


def test_files_of_a_write_that_nobody_knows_count_only_when_older_than_the_timeline() -> None:
    folder = Folder([base(A, "050"), base(B, "250")])
    assert seen(TableView(DONE, folder)) == {A: "050"}
    assert seen(TableView(Timeline(()), folder)) == {}


def test_looking_back_sees_what_was_there_then() -> None:
    folder = Folder([base(A, "100"), base(A, "300"), base(B, "200")])
    assert seen(TableView(DONE, folder, as_of="150")) == {A: "100"}
    assert seen(TableView(DONE, folder, as_of="200")) == {A: "100", B: "200"}
    assert seen(TableView(DONE, folder, as_of="099")) == {}


def test_replaced_groups_are_gone_from_their_replacement_on() -> None:
    folder = Folder([base(A, "100"), base(B, "200")])
    replaced = {("p", A): "200"}
    assert seen(TableView(DONE, folder, replaced)) == {B: "200"}
    assert seen(TableView(DONE, folder, replaced, as_of="100")) == {A: "100"}
    assert seen(TableView(DONE, folder, replaced, as_of="200")) == {B: "200"}
    assert seen(TableView(DONE, folder, {("other", A): "200"})) == {A: "100", B: "200"}


def test_of_two_files_of_one_write_the_last_listed_counts() -> None:
    slices = latest_slices(TableView(DONE, Folder([base(A, "100", "0-1-0"), base(A, "100", "0-1-1")])), "p")
    assert [one.base_file.write_token for one in slices if one.base_file] == ["0-1-1"]


def test_other_files_in_the_folder_are_passed_over() -> None:
    others = [".hoodie_partition_metadata", "_SUCCESS", "data.parquet", f".{base(A, '100')}.crc", "x.tmp"]
    assert seen(TableView(DONE, Folder([*others, base(A, "100")]))) == {A: "100"}


def test_change_data_is_no_part_of_a_slice() -> None:
    log = f".{A}_100.log.1_0-1-0"
    (slice_,) = latest_slices(TableView(DONE, Folder([base(A, "100"), log, log + ".cdc"])), "p")
    assert [one.name for one in slice_.log_files] == [log]


def test_names_of_base_files_are_taken_apart() -> None:
    name = base_file_name(A, "3-14-15", "20240101120000000")
    parsed = parse_base_file(FileStat(f"x/y/{name}", 99, 5, False))
    assert parsed is not None
    assert (parsed.file_id, parsed.write_token, parsed.instant) == (A, "3-14-15", "20240101120000000")
    assert (parsed.path, parsed.name, parsed.size) == (f"x/y/{name}", name, 99)
    for wrong in ("a.parquet", "a_b.parquet", "a_b_c.parquet", f"{name}.crc", f".{name}", "a_b_1.txt"):
        assert parse_base_file(FileStat(wrong, 1, 1, False)) is None


def test_names_of_log_files_are_taken_apart() -> None:
    parsed = parse_log_file(FileStat(f"p/.{A}_20240101120000000.log.12_1-2-3", 9, 0, False))
    assert parsed is not None
    assert (parsed.file_id, parsed.instant, parsed.version, parsed.write_token, parsed.is_cdc) == (
        A,
        "20240101120000000",
        12,
        "1-2-3",
        False,
    )
    old = parse_log_file(FileStat(f".{A}_100.log.1", 9, 0, False))
    assert old is not None
    assert old.write_token == ""
    assert parse_log_file(FileStat(base(A, "100"), 1, 1, False)) is None


def test_file_ids_with_a_partition_path_in_them_are_whole():
    """A record index by partition: any letter may be there, those that separate the parts of a name among them."""
    for path in ("__HIVE_DEFAULT_PARTITION__", "day%3D2024-01-01", "a_b c.d", "ü", "x_1-0-1_7.hfile"):
        file_id = f"record-index-{path}-0003-0"
        parsed = parse_base_file(
            FileStat(f"record_index/{base_file_name(file_id, '3-0-0', '17', 'hfile')}", 1, 1, False)
        )
        assert (parsed.file_id, parsed.write_token, parsed.instant) == (file_id, "3-0-0", "17")
        log = parse_log_file(FileStat(f"record_index/{log_file_name(file_id, '17', 2, '3-0-0')}", 1, 1, False))
        assert (log.file_id, log.instant, log.version, log.write_token) == (file_id, "17", 2, "3-0-0")


def test_a_slice_weighs_its_files() -> None:
    base = BaseFile("p/f_0_100.parquet", "f", "0", "100", 10)
    log = LogFile("p/.f_100.log.1_0", "f", "100", 1, "0", False, 5)
    assert FileSlice("p", "f", base, (log, log), "100").weight == 20
    assert FileSlice("p", "f", None, (log,), "100").weight == 5
