"""Names of other libraries get an error that says what to write.

Module: hudi_fast.config.words.
"""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.config.words import MERGE_GUESSES, MODULE_GUESSES, RENAMED, SERVICE_GUESSES, TABLE_GUESSES
from hudi_fast.table.services import TableServices


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> hf.HudiTable:
    path = tmp_path_factory.mktemp("guesses") / "t"
    hf.write([{"id": 1}], path, key="id")
    return hf.HudiTable(path)


@pytest.mark.parametrize("name", TABLE_GUESSES)
def test_a_name_of_another_library_is_answered_with_ours(table: hf.HudiTable, name: str) -> None:
    assert not hasattr(table, name)
    with pytest.raises(AttributeError, match=re.escape(f"has no attribute {name!r}; use {TABLE_GUESSES[name]}")):
        getattr(table, name)


@pytest.mark.parametrize("name", SERVICE_GUESSES)
def test_a_service_of_another_library_is_answered_with_ours(table: hf.HudiTable, name: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"has no attribute {name!r}; use {SERVICE_GUESSES[name]}")):
        getattr(table.services, name)


def test_the_options_of_an_answer_sort_a_table(tmp_path: Path) -> None:
    for text in (SERVICE_GUESSES["sort"], SERVICE_GUESSES["z_order"]):
        path = tmp_path / str(len(text))
        hf.write([{"id": n, "a": -n, "b": n % 3} for n in range(9)], path, key="id")
        done = eval(f"services.{text}", {"services": hf.HudiTable(path).services})
        assert done.instant
        assert [row["id"] for row in hf.read(path).to_pylist()] != list(range(9))


def test_the_names_that_are_answered_exist(table: hf.HudiTable) -> None:
    for text in TABLE_GUESSES.values():
        for path in re.findall(r"[a-z_.]+(?=\()", text):
            owner = TableServices if path.startswith("services.") else type(table)
            assert hasattr(owner, path.removeprefix("services.")), path
    assert hasattr(table.config, "partition_fields")


@pytest.mark.parametrize("name", MODULE_GUESSES)
def test_the_package_answers_alike(name: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"has no attribute {name!r}; use {MODULE_GUESSES[name]}")):
        getattr(hf, name)


@pytest.mark.parametrize("name", MERGE_GUESSES)
def test_a_merge_answers_alike(table: hf.HudiTable, name: str) -> None:
    merge = table.merge([{"id": 1}])
    with pytest.raises(AttributeError, match=re.escape(f"Merge has no attribute {name!r}; use {MERGE_GUESSES[name]}")):
        getattr(merge, name)
    for ours in re.findall(r"[a-z_]+(?=\()", MERGE_GUESSES[name]):
        assert hasattr(merge, ours)


def test_a_typing_error_gets_the_nearest_name(table: hf.HudiTable) -> None:
    with pytest.raises(AttributeError, match=r"HudiTable has no attribute 'to_arow'; did you mean 'to_arrow'\?"):
        table.to_arow  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"did you mean 'HudiTable'\?"):
        hf.HudiTabel  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"'nothing_like_it'$"):
        table.nothing_like_it  # type: ignore[attr-defined]  # noqa: B018


def test_tables_are_still_copied_and_pickled(table: hf.HudiTable, tmp_path: Path) -> None:
    for other in (copy.copy(table), pickle.loads(pickle.dumps(table))):
        assert other.count() == 1


@pytest.mark.parametrize("name", RENAMED)
def test_an_earlier_name_works_and_warns(table: hf.HudiTable, name: str) -> None:
    owner = hf if RENAMED[name] in hf.__all__ else table.services
    said = rf"\.{name} is now \w+\.{RENAMED[name]}; the next release has the new name only"
    with pytest.warns(FutureWarning, match=said):
        assert getattr(owner, name) == getattr(owner, RENAMED[name])


def test_a_service_that_is_not_there_gets_the_nearest_name(table: hf.HudiTable) -> None:
    with pytest.raises(AttributeError, match="services has no attribute 'compakt'; did you mean 'compact'"):
        table.services.compakt  # type: ignore[attr-defined]  # noqa: B018


def test_an_earlier_name_of_something_else_gives_no_warning(table: hf.HudiTable) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AttributeError, match="'register'"):
            table.services.register  # type: ignore[attr-defined]  # noqa: B018
        with pytest.raises(AttributeError, match="'ttl'"):
            hf.ttl  # type: ignore[attr-defined]  # noqa: B018
