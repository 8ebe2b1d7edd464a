"""The policies of cleaning, against their definitions in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.config.service_options import CleanOptions
from hudi_fast.services.retention import RetainedFiles, earliest_to_retain, outdated
from hudi_fast.timeline.instants import Instant, State, Timeline, ms_from_instant
from hudi_fast.view.file_names import BaseFile, LogFile
from hudi_fast.view.slices import PastSlice

POLICIES = ("KEEP_LATEST_COMMITS", "KEEP_LATEST_BY_HOURS", "KEEP_LATEST_FILE_VERSIONS")


def at(number: int) -> str:
    """Hour ``number`` of a day."""
    return f"20260101{number:02}0000000"


def done(*numbers: int, action: str = "commit") -> list[Instant]:
    return [Instant(at(one), action, State.COMPLETED, at(one)) for one in numbers]


def retained(instants: Sequence[Instant], last: str | None = None, now: str = at(9), **options: object) -> str | None:
    found = earliest_to_retain(
        Timeline(tuple(sorted(instants, key=lambda one: (one.requested, one.action)))),
        CleanOptions(**options),
        ms_from_instant(now, "UTC"),
        "UTC",
        last,
    )
    return None if found is None else found.requested


def test_as_many_commits_as_are_retained_leave_nothing_to_clean() -> None:
    assert retained(done(1, 2, 3), commits_retained=3) is None
    assert retained(done(1, 2, 3, 4), commits_retained=3) == at(2)
    assert retained([*done(1, 2, 3), *done(4, action="clean")], commits_retained=3) is None
    assert retained(
        [*done(1), *done(2, action="deltacommit"), *done(3, action="replacecommit")], commits_retained=1
    ) == at(3)


@pytest.mark.parametrize(
    "action", ["commit", "deltacommit", "replacecommit", "compaction", "logcompaction", "clustering"]
)
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_what_is_pending_keeps_the_commit_before_it(action: str, state: State) -> None:
    pending = Instant(at(3), action, state)
    assert retained([*done(1, 2, 4, 5, 6), pending], commits_retained=2) == at(2)
    assert retained([*done(4, 5, 6), pending], commits_retained=2) is None
    assert retained([*done(1, 2), pending, *done(4)], commits_retained=2) == at(2)
    assert retained([*done(1, 2, 4, 5, 6), Instant(at(3), "indexing", state)], commits_retained=2) == at(5)


def test_hours_are_counted_back_from_now_in_the_timeline_s_zone() -> None:
    options = {"policy": "KEEP_LATEST_BY_HOURS", "hours_retained": 2}
    assert retained(done(1, 5, 7, 8), now=at(9), **options) == at(7)
    assert retained(done(1, 5), now=at(9), **options) is None
    assert retained([*done(7, 8), Instant(at(1), "commit", State.INFLIGHT)], now=at(9), **options) == at(7)


def test_one_clean_moves_on_by_as_many_commits_as_it_may() -> None:
    options = {"commits_retained": 2, "max_commits_to_clean": 1}
    assert retained(done(1, 2, 3, 4, 5, 6), **options) == at(5)  # nobody has cleaned yet
    assert retained(done(1, 2, 3, 4, 5, 6), last=at(2), **options) == at(3)
    assert retained(done(1, 2, 3, 4, 5, 6), last=at(5), **options) == at(5)


def test_file_versions_have_no_earliest_commit() -> None:
    assert retained(done(1, 2, 3), policy="KEEP_LATEST_FILE_VERSIONS") is None


# ---- which slices


def one_slice(file_id: str, begins: int, logs: int) -> PastSlice:
    base = BaseFile(f"p/{file_id}_1_{at(begins)}.parquet", file_id, "1", at(begins), 10)
    found = tuple(
        LogFile(f"p/.{file_id}_{at(begins)}.log.{n}_1-0-1", file_id, at(begins), n, "1-0-1", False, 5)
        for n in range(logs)
    )
    return PastSlice(at(begins), (base,), found)


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, list[PastSlice]], dict[tuple[str, str], str], RetainedFiles]:
    groups, replaced, compacted, saved, clustered = {}, {}, {}, set(), set()
    for number in range(draw(st.integers(1, 3))):
        file_id = f"g{number}"
        begins = sorted(draw(st.sets(st.integers(1, 8), min_size=1, max_size=5)), reverse=True)
        groups[file_id] = [one_slice(file_id, one, draw(st.integers(0, 2))) for one in begins]
        if draw(st.booleans()):
            replaced["p", file_id] = at(draw(st.integers(begins[0], 9)))
        if draw(st.booleans()):
            compacted["p", file_id] = at(draw(st.sampled_from(begins)))
        for one in groups[file_id]:
            names = [file.name for file in one.files()]
            fate = draw(st.integers(0, 9))
            if fate == 0:
                saved.add(draw(st.sampled_from(names)))
            elif fate == 1:
                clustered.add(draw(st.sampled_from(names)))
    return groups, replaced, RetainedFiles({"p": frozenset(saved)}, compacted, {"p": frozenset(clustered)})


def kept_by_definition(
    groups: Mapping[str, Sequence[PastSlice]],
    replaced: Mapping[tuple[str, str], str],
    held: RetainedFiles,
    options: CleanOptions,
    earliest: str | None,
) -> set[tuple[str, str]]:
    """(file id, where the slice begins) of what stays, said as the documentation says it."""
    kept = set()
    for file_id, slices in groups.items():
        times = [one.begins for one in slices]
        needed_from = held.compacted.get(("p", file_id))
        gone_at = replaced.get(("p", file_id))
        needed = [time for time in times if needed_from is not None and time >= needed_from]
        rest = [time for time in times if time not in needed]
        for one in slices:
            names = {file.name for file in one.files()}
            stays = bool(names & held.saved["p"]) or bool(names & held.clustered["p"]) or one.begins in needed
            if earliest is None:
                count = options.versions_retained - (1 if needed_from is not None else 0)
                stays = stays or (gone_at is None and one.begins in rest[: max(0, count)])
            elif gone_at is None:
                older = [time for time in times if time < earliest]
                stays = stays or one.begins >= earliest or one.begins in (max(times), max(older, default=""))
            else:
                stays = stays or gone_at >= earliest
            if stays:
                kept.add((file_id, one.begins))
    return kept


@given(tables(), st.sampled_from(POLICIES), st.integers(1, 3), st.integers(1, 9))
def test_slices_stay_as_the_policies_say_in_words(
    table: tuple[dict[str, list[PastSlice]], dict[tuple[str, str], str], RetainedFiles],
    policy: str,
    retained: int,
    earliest: int,
) -> None:
    groups, replaced, held = table
    options = CleanOptions(policy=policy, versions_retained=retained)
    limit = None if policy == POLICIES[2] else at(earliest)
    found = outdated("p", groups, replaced, held, options, limit)
    gone = {(next(one.files()).file_id, one.begins) for one in found.slices}
    everything = {(file_id, one.begins) for file_id, slices in groups.items() for one in slices}
    assert everything - gone == kept_by_definition(groups, replaced, held, options, limit)
    assert len(gone) == len(found.slices)
    assert found.is_empty == (gone == everything)
    for file_id, slices in groups.items():  # the newest slice of a group that queries see is there, whatever they say
        assert ("p", file_id) in replaced or (file_id, slices[0].begins) not in gone
