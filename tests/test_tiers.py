"""Tiers, lots, shared tables and shared classes of the tests themselves.

The marks of the tests are compared with ``tests/support/durations.txt``, which ``make durations`` writes.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support.golden import GoldenStore
from tests.support.jvm import archive_of, class_path_of, java_options, pyspark_jars
from tests.support.lots import Lot, Measured, choose, lots_of, read_durations, write_durations
from tests.support.tiers import COLLECTED, MISNAMED, RUNS, TIERS, marks_of, needs_of, summary, tier_of

ROOT = Path(__file__).parents[1]
SLOW_SECONDS = 5.0
"""A test of one process that takes as long as this must be marked slow; half a second is reason enough."""
LONG_CASE_SECONDS = 0.5
"""Of the cases of a test that take as long as this, one is not marked slow."""
SMOKE_SECONDS = 700.0
"""All smoke tests together, in seconds of one process."""


@pytest.mark.parametrize(
    ("fixtures", "marks", "tier"),
    [
        ((), (), "check"),
        (("tmp_path",), ("slow",), "full"),
        (("spark",), (), "full"),
        (("spark",), ("smoke",), "test"),
        (("hudi_12", "spark"), ("smoke",), "test"),
        ((), ("cluster",), "full"),
        (("s3_server",), ("slow", "smoke"), "test"),
        (("spark",), ("smoke", "long"), "long"),
    ],
)
def test_the_tier_follows_from_needs_and_marks(fixtures: tuple[str, ...], marks: tuple[str, ...], tier: str) -> None:
    assert tier_of(needs_of(fixtures, marks), marks) == tier


@pytest.mark.smoke("first")
@pytest.mark.slow(but=("first", "second"))
@pytest.mark.parametrize("tier", ["first", "second", "third"])
def test_marks_are_for_the_cases_that_they_name_or_leave(tier: str, request: pytest.FixtureRequest) -> None:
    assert marks_of(request.node) - {"parametrize"} == {"first": {"smoke"}, "second": set(), "third": {"slow"}}[tier]


def test_make_test_and_what_it_leaves_out_are_all_tests() -> None:
    assert {*RUNS["check"], *RUNS["smoke"]} == {*RUNS["test"]}
    assert {*RUNS["test"], *RUNS["rest"]} == {*RUNS["full"]}
    assert not {*RUNS["test"]} & {*RUNS["rest"]}
    assert RUNS["long"] == TIERS


def test_each_tier_has_a_line() -> None:
    assert summary([("check", 0.25), ("full", 7.0), ("check", 1.0)]) == [
        " check      2 tests        1 s",
        "  full      1 tests        7 s",
    ]


def test_marks_name_cases_that_there_are(request: pytest.FixtureRequest) -> None:
    assert request.config.stash[MISNAMED] == []


# ---- marks and measured seconds


@pytest.fixture
def collected(request: pytest.FixtureRequest) -> dict[str, tuple[str, frozenset[str]]]:
    """Tier and needs of every test, those that this run leaves out included."""
    found = request.config.stash[COLLECTED]
    if len({test.partition("::")[0] for test in found}) < 500:
        pytest.skip("Only part of the tests is collected.")
    return found


def test_tests_that_take_long_are_marked(collected: dict[str, tuple[str, frozenset[str]]]) -> None:
    unmarked = {test for test, (tier, _) in collected.items() if tier == "check"}
    slow = {test: entry.seconds for test, entry in read_durations().items() if entry.seconds >= SLOW_SECONDS}
    assert {test: seconds for test, seconds in slow.items() if test in unmarked} == {}, (
        "Mark these tests slow, or make them faster and run `make durations`."
    )


def test_one_of_many_long_cases_is_left_to_a_check(collected: dict[str, tuple[str, frozenset[str]]]) -> None:
    long = {test for test, entry in read_durations().items() if entry.seconds >= LONG_CASE_SECONDS}
    left = Counter(test.partition("[")[0] for test in long if collected.get(test, ("", ()))[0] == "check")
    assert {test for test, cases in left.items() if cases > 1 and "golden" not in test} == set(), (
        "Mark the other cases slow: @pytest.mark.slow(but=...)."
    )


def test_modules_with_smoke_tests_name_the_mark(collected: dict[str, tuple[str, frozenset[str]]]) -> None:
    """A smoke run imports no others."""
    modules = {test.partition("::")[0] for test, (tier, _) in collected.items() if tier == "test"}
    assert [name for name in modules if "mark.smoke" not in (ROOT / name).read_text(encoding="utf-8")] == []


def test_smoke_tests_are_few(collected: dict[str, tuple[str, frozenset[str]]]) -> None:
    smoke = {test: needs for test, (tier, needs) in collected.items() if tier == "test"}
    by_need = Counter(need for needs in smoke.values() for need in needs)
    assert 40 <= by_need["spark"] <= 90
    assert 25 <= by_need["peer"] <= 60
    assert by_need["server"] >= 8
    assert by_need["cluster"] >= 1
    assert sum(entry.seconds for test, entry in read_durations().items() if test in smoke) <= SMOKE_SECONDS


# ---- lots


def test_lots_are_modules_with_the_longest_first() -> None:
    measured = {
        "tests/a.py::test_x": Measured(3.0, frozenset({"spark", "server"})),
        "tests/b.py::test_x": Measured(9.0, frozenset()),
        "tests/b.py::test_y": Measured(1.0, frozenset({"jvm", "server", "hdfs"})),
    }
    assert lots_of([*measured, "tests/a.py::test_new"], measured) == [
        Lot("tests/b.py", "", 10.0, frozenset({"hdfs"})),
        Lot("tests/a.py", "spark", 3.04),
    ]


def test_a_jvm_starts_in_one_process_while_there_is_other_work() -> None:
    peer, other_peer, spark, plain = (
        Lot("p1", "peer", 9.0),
        Lot("p2", "peer", 8.0),
        Lot("s", "spark", 7.0),
        Lot("u", "", 6.0),
    )
    lots = [peer, other_peer, spark, plain]
    assert choose(lots, [], []) == peer
    assert choose(lots[1:], [], [peer]) == spark
    assert choose(lots[1:], [peer], [spark]) == other_peer
    assert choose([other_peer, plain], [spark], [peer]) == plain
    assert choose([other_peer], [spark], [peer]) is None
    many = [Lot("p3", "peer", 70.0), other_peer]
    assert choose(many, [spark], [peer]) == many[0]
    assert choose([other_peer], [], [peer]) == other_peer


def test_a_server_starts_in_one_process_while_there_is_other_work() -> None:
    long, kafka, short_kafka, hdfs = (
        Lot("a", "", 9.0),
        Lot("k1", "", 8.0, frozenset({"kafka"})),
        Lot("k2", "", 1.0, frozenset({"kafka", "schema_registry"})),
        Lot("h", "", 3.0, frozenset({"hdfs"})),
    )
    assert choose([long, short_kafka], [kafka], []) == short_kafka
    assert choose([short_kafka, hdfs], [], [kafka]) == hdfs
    assert choose([short_kafka], [], [kafka]) == short_kafka


def test_durations_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "durations.txt"
    here = "tests/test_tiers.py::test_x"
    write_durations(
        {here: Measured(2.0, frozenset({"jvm", "spark"})), "tests/gone.py::t": Measured(9, frozenset())}, path
    )
    assert read_durations(path) == {here: Measured(2.0, frozenset({"jvm", "spark"}))}
    write_durations({f"{here}[a b]": Measured(1.5, frozenset()), here: Measured(0.1, frozenset())}, path)
    assert read_durations(path) == {f"{here}[a b]": Measured(1.5, frozenset())}
    assert read_durations(tmp_path / "none.txt") == {}


# ---- shared tables


def test_tables_are_unzipped_once_and_linked(tmp_path: Path) -> None:
    store = GoldenStore(tmp_path / "store")
    first, second = (store.linked("cow_v6_mixed", tmp_path / name) for name in ("first", "second"))
    file = next(path for path in first.table.rglob("*.parquet"))
    assert os.path.samefile(file, second.table / file.relative_to(first.table))
    file.unlink()
    assert second.snapshot().num_rows > 0
    store.verify("cow_v6_mixed")


def test_a_test_that_changes_a_shared_file_is_noticed(tmp_path: Path) -> None:
    store = GoldenStore(tmp_path / "store")
    table = store.linked("cow_v6_mixed", tmp_path / "first").table
    (table / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=x\n")
    with pytest.raises(AssertionError, match=r"cow_v6_mixed in place \(hoodie\.properties\): take golden"):
        store.verify("cow_v6_mixed")
    again = store.linked("cow_v6_mixed", tmp_path / "again")
    assert "hoodie.table.version" in (again.table / ".hoodie" / "hoodie.properties").read_text()


# ---- the archive of classes


def test_sparks_of_tests_take_their_classes_from_the_archive(java: str) -> None:
    """Java ignores without a word an archive that does not fit."""
    jars = pyspark_jars()
    archive = None if jars is None else archive_of(jars)
    if jars is None or archive is None or not archive.exists():
        pytest.skip("`make peers` makes the archive.")
    command = [java, *java_options(64, jars).split(), "-Xlog:class+load", "-cp", class_path_of(jars)]
    submit = "org.apache.spark.deploy.SparkSubmit"
    said = subprocess.run([*command, submit, "--version"], capture_output=True, text=True, timeout=100, check=False)
    assert f"{submit} source: shared objects file (top)" in said.stdout
