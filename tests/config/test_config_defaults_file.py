"""``hudi-defaults.conf``: what counts where, as in Apache Hudi 1.2.0; the options of a call come first."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.config.defaults_file import machine_defaults, with_defaults, with_table_defaults
from hudi_fast.writing.settings import Settings
from tests.support.small_tables import options, plain_rows, rows_of

KEYS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    monkeypatch.setenv("HUDI_CONF_DIR", str(tmp_path / "conf"))

    def write(text: str, name: str = "hudi-defaults.conf") -> Path:
        path = tmp_path / "conf" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_lines_are_those_of_hudi(file: Callable[[str], Path]) -> None:
    file("hoodie.clean.commits.retained=3\n", "more.conf")
    file(
        "# hoodie.no = 1\n\nhoodie.metadata.enable   false\ninclude=more.conf\n"
        "hoodie.cleaner.commits.retained = 4\nhoodie.datasource.query.type=incremental\nspark.other 1\n"
    )
    assert dict(machine_defaults().general) == {
        "hoodie.metadata.enable": "false",
        "hoodie.clean.commits.retained": "4",
    }


def test_options_of_the_call_come_first_in_any_spelling(file: Callable[[str], Path]) -> None:
    file("hoodie.clean.commits.retained=3\nhoodie.datasource.write.keygenerator.class=a.B\n")
    assert with_defaults({"hoodie.cleaner.commits.retained": 9}) == {"hoodie.cleaner.commits.retained": 9}
    given = {"hoodie.datasource.write.keygenerator.type": "SIMPLE"}
    assert with_table_defaults(given) == {"hoodie.clean.commits.retained": "3", **given}


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(
    file: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file("hoodie.clean.commits.retained=3\n")
    first = machine_defaults()
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("it was read again"))
    assert machine_defaults() is first
    monkeypatch.undo()
    monkeypatch.setenv("HUDI_CONF_DIR", str(path.parent))
    path.write_text("hoodie.clean.commits.retained=12\n")
    assert Settings.for_write({}).clean.commits_retained == 12


def test_a_new_table_is_made_by_the_file_and_an_old_one_stays(file: Callable[[str], Path], tmp_path: Path) -> None:
    file(
        "".join(f"{key}={value}\n" for key, value in KEYS.items())
        + "hoodie.datasource.write.table.type MERGE_ON_READ\n"
    )
    rows = plain_rows(range(10))
    hf.write(rows, tmp_path / "t", {"hoodie.table.name": "t"})
    table = hf.HudiTable.open(tmp_path / "t")
    assert (table.config.is_mor, table.config.record_key_fields) == (True, ("id",))
    file("hoodie.datasource.write.recordkey.field=other\nhoodie.table.name=else\n")
    hf.write(plain_rows(range(5, 15), ts=2), tmp_path / "t")
    assert rows_of(hf.HudiTable.open(tmp_path / "t").to_arrow()) == rows_of(rows) | rows_of(
        plain_rows(range(5, 15), ts=2)
    )
    file("".join(f"{key}={value}\n" for key, value in KEYS.items()))
    made = hf.HudiTable.create(tmp_path / "c", rows.schema, {"hoodie.table.name": "c"})
    assert made.config.partition_fields == ("part",)
    hf.write(rows, tmp_path / "t", {"hoodie.table.name": "t"}, "overwrite")
    assert not hf.HudiTable.open(tmp_path / "t").config.is_mor


def test_services_and_statements_use_the_file(file: Callable[[str], Path], tmp_path: Path) -> None:
    file("hoodie.clean.automatic=false\n")
    for ts in (1, 2, 3):
        hf.write(plain_rows(range(10), ts=ts), tmp_path / "t", options())
    file("hoodie.clean.commits.retained=1\nhoodie.clean.automatic=false\n")
    table = hf.HudiTable.open(tmp_path / "t")
    assert table.services.clean().files_deleted
    file("hoodie.write.lock.provider=com.acme.Lock\n")
    with pytest.raises(hf.HudiError, match=r"com\.acme\.Lock") as caught:
        table.upsert(plain_rows([1], ts=4), {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"})
    assert "hudi-defaults.conf" in "".join(caught.value.__notes__)


@pytest.mark.parametrize(
    ("folder", "text", "said"),
    [
        ("", None, "cannot be read: No such file"),
        ("", "include=hudi-defaults.conf\n", "a loop"),
        ("", "include=none.conf\n", r"none.conf cannot be read.*includes it"),
        ("s3://lake/conf", None, "not a local folder"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(
    folder: str,
    text: str | None,
    said: str,
    file: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    if folder:
        monkeypatch.setenv("HUDI_CONF_DIR", folder)
    if text is not None:
        file(text)
    with pytest.raises(hf.ConfigError, match=said):
        hf.write(plain_rows([1]), tmp_path / "t", options())
    assert not os.path.exists(tmp_path / "t")
