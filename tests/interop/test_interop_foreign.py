"""Tables of other projects after writes and services of hudi_fast: they have the rows that follow, in real Hudi, too.

Modules: hudi_fast.writing.flow, hudi_fast.table.services.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.peer.client import PeerError, RealHudi
from tests.support.foreign import OTHER_COLUMNS, filters_of_values, foreign_names, needs_foreign, unzip_foreign
from tests.support.foreign_lives import ForeignLife
from tests.support.rows import assert_same_rows
from tests.support.tiers import is_long

REFUSED = {
    "hudi-utilities__parquet-dfs-v1-fixture": "it needs the key generator class org.apache.hudi.utilities",
}
"""Tables that cannot be written, by Hudi only with a class of the user, and what the error says."""

REWRITTEN = ("whole_seconds_v6",)
"""Tables whose files were written again by hand, so they are not as long as their commits say until a clean."""

NAMES = [name for name in foreign_names() if name not in REFUSED]
Lived = Callable[[str], ForeignLife]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Lived:
    """The life of a table, which is lived when it is first asked for; its rows are right after each step.

    The first table of each layout and those written by hand have a whole life; in the long form, every table.
    """
    folder, done = tmp_path_factory.mktemp("foreign"), dict[str, ForeignLife]()

    def live(name: str) -> ForeignLife:
        if name not in done:
            life = ForeignLife(str(unzip_foreign(name, folder).table))
            first = life.layout not in {other.layout for other in done.values()}
            for step, run in life.steps(whole=first or name in REWRITTEN or is_long(pytestconfig)):
                try:
                    run()
                    life.check()
                except (AssertionError, hf.HudiError) as error:
                    raise AssertionError(f"{name}, after {step}: {error}") from error
            done[name] = life
        return done[name]

    return live


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:hudi_fast.HudiWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_table_has_the_rows_that_follow_after_each_write_and_service(name: str, lived: Lived) -> None:
    table = lived(name).table
    result = table.services.validate()
    assert result.ok, result.differences.to_pylist()
    rows = table.to_arrow()
    # For half of the columns, of each kind in turn; tests.reading.test_reading_foreign asks all of a table as it came.
    for filter_ in islice(filters_of_values(rows), None, None, 7):
        assert_same_rows(table.to_arrow(filter=filter_), rows.filter(filter_), ignore=())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in foreign_names() if name in REFUSED])
def test_a_write_that_is_refused_changes_nothing(name: str, tmp_path: Path) -> None:
    life = ForeignLife(str(unzip_foreign(name, tmp_path).table))
    before = files_of(life.path)
    for write in (life.upsert, life.delete):
        with pytest.raises(hf.HudiError, match=REFUSED[name]):
            write()
    assert files_of(life.path) == before


def files_of(path: str) -> dict[Path, int]:
    """Files but those of locks, and the time of their last change."""
    files = (file for file in Path(path).rglob("*") if file.is_file() and ".locks" not in file.parts)
    return {file: file.stat().st_mtime_ns for file in files}


def queries(life: ForeignLife) -> dict[str, tuple[dict[str, Any], Callable[[], pa.Table]]]:
    """Options of real Hudi, and how hudi_fast reads the same."""
    table, begin = life.table, "hoodie.datasource.read.begin.instanttime"
    optimized: Callable[[], pa.Table] = lambda: table.to_arrow(query_type="read_optimized")  # noqa: E731
    changes = {"hoodie.datasource.query.type": "incremental", begin: life.before_last}
    found = {"snapshot": ({}, table.to_arrow), "incremental": (changes, lambda: table.incremental(life.before_last))}
    if table.table_type == "MERGE_ON_READ":
        found["read_optimized"] = ({"hoodie.datasource.query.type": "read_optimized"}, optimized)
    return found


@needs_foreign
@pytest.mark.filterwarnings("ignore:.*:hudi_fast.HudiWarning")
def test_hudi_reads_the_same_rows_after_all_writes_and_services(
    lived: Lived, hudi_12: RealHudi, pytestconfig: pytest.Config
) -> None:
    wrong, layouts = {}, set()
    for name in NAMES:
        life = lived(name)
        asked = queries(life)
        if life.layout in layouts and not is_long(pytestconfig):
            asked = {"snapshot": asked["snapshot"]}  # files and instants of the other queries are as in the first one
        layouts.add(life.layout)
        for query, (options, read) in asked.items():
            try:
                assert_same_rows(hudi_12.read(life.path, options), read(), ignore=tuple(OTHER_COLUMNS.get(name, ())))
            except (AssertionError, PeerError) as error:
                wrong[f"{name}, {query}"] = str(error)[:600]
    assert not wrong, "\n".join(f"{which}: {what}" for which, what in wrong.items())
