"""The power is cut at the calls of each action: of a sample of them here, of all of them in the long form."""

from __future__ import annotations

import pytest

from tests.simulation.histories import Setting
from tests.simulation.installed import LOCAL
from tests.simulation.power import ACTIONS, cut_everywhere

VERSIONS = ("6", "8", "9")
ALL = [(name, kind, version) for name in ACTIONS for kind in ACTIONS[name].kinds for version in VERSIONS]
SOME = [case for at, case in enumerate(ALL) if at % 3 == at // 3 % 3]
"""Each action and type in one version."""


def ids(case: tuple[str, str, str]) -> str:
    return "-".join((case[0], case[1][0].lower() + case[2]))


@pytest.mark.slow
@pytest.mark.parametrize("case", SOME, ids=ids)
def test_a_cut_leaves_a_table_as_before_or_after(case: tuple[str, str, str]) -> None:
    name, kind, version = case
    cuts = cut_everywhere(name, Setting(LOCAL, kind, version, ACTIONS[name].metadata, shared=False), limit=2, losses=1)
    assert cuts.calls > 5
    assert not cuts.wrong, "\n".join(cuts.wrong)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("metadata", [True, False], ids=["metadata", "listed"])
@pytest.mark.parametrize("case", ALL, ids=ids)
def test_cuts_at_every_call_leave_a_table_as_before_or_after(case: tuple[str, str, str], metadata: bool) -> None:
    name, kind, version = case
    setting = Setting(LOCAL, kind, version, metadata or ACTIONS[name].metadata, shared=False)
    cuts = cut_everywhere(name, setting)
    assert not cuts.wrong, "\n".join(cuts.wrong)


@pytest.mark.slow
def test_a_service_that_is_executed_again_knows_nothing_of_files_of_its_first_attempt() -> None:
    """Without its markers and its inflight file, which a loss of power may take."""
    for version in ("6", "8"):
        setting = Setting(LOCAL, "COPY_ON_WRITE", version, metadata=False, shared=False)
        cuts = cut_everywhere("cluster", setting, seed=1, limit=24)
        assert not cuts.wrong, "\n".join(cuts.wrong)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "8"])
def test_an_archive_hides_no_rows_that_nobody_has_written_since(version: str) -> None:
    """Each instant of these rows is archived; a disk may lose some of the deletions of its files and keep others."""
    setting = Setting(LOCAL, "COPY_ON_WRITE", version, metadata=False, shared=False, index="BUCKET")
    cuts = cut_everywhere("archive", setting, losses=8)
    assert not cuts.wrong, "\n".join(cuts.wrong)
