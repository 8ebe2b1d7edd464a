"""Tables that a loss of power has left with empty or cut files: no row disappears without an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from tests.support.power import kinds
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows


def make(path: Path, version: str, kind: str, **changes: str) -> dict[str, Any]:
    """A table of two writes, the second of which changes half of the rows; returns its options."""
    given = {**options(table_version=version), "hoodie.datasource.write.table.type": kind, **changes}
    hf.write(plain_rows(range(8)), path, given)
    hf.write(plain_rows(range(4), ts=2, text="b"), path, given)
    return given


def timeline_folder(path: Path) -> Path:
    later = path / ".hoodie" / "timeline"
    return later if later.exists() else path / ".hoodie"


def empty_last_write(path: Path) -> str:
    """Empty the completed file of the newest write; returns its instant."""
    done = [one for one in timeline_folder(path).iterdir() if one.suffix in (".commit", ".deltacommit")]
    last = max(done, key=lambda one: one.name)
    last.write_bytes(b"")
    return last.name[:17]


def files_of(path: Path, instant: str, base: str = "") -> list[Path]:
    """Data files that are named after an instant, or log files of the slice of ``base``."""
    return sorted(
        each
        for each in path.glob("p*/*")
        if each.is_file() and (instant in each.name or (base and ".log." in each.name and base in each.name))
    )


def first_instant(path: Path) -> str:
    return str(hf.HudiTable.open(path).history()["instant"][0].as_py())


@pytest.mark.slow(but="c6")
@kinds
def test_a_write_without_a_body_is_no_empty_write(tmp_path: Path, version: str, kind: str) -> None:
    before = plain_rows(range(8))
    given = make(tmp_path, version, kind)
    first = first_instant(tmp_path)
    lost = empty_last_write(tmp_path)
    table = hf.HudiTable.open(tmp_path)
    for use in (
        table.to_arrow,
        lambda: hf.write(plain_rows([1]), tmp_path, given),
        lambda: table.services.cluster(options=given),
    ):
        with pytest.raises(hf.CorruptTableError, match=f"{lost} has no content") as caught:
            use()
        assert lost in str(caught.value)
        assert "services.rollback" in str(caught.value)
    assert table.to_arrow(as_of=first).num_rows == before.num_rows
    assert [one for one in table.services.plan_repair().findings if one.instant == lost]
    table.services.rollback(lost)
    assert set(table_rows(tmp_path)) == set(before["id"].to_pylist())
    assert {row[-1][0] for row in table_rows(tmp_path).values()} == {"a"}
    hf.write(plain_rows(range(4), ts=3, text="c"), tmp_path, given)
    assert sum(row[-1][0] == "c" for row in table_rows(tmp_path).values()) == 4
    assert_tidy(tmp_path)


@pytest.mark.slow(but=("c6-a part-false", "c9-a part-false", "m6-a part-false"))
@pytest.mark.parametrize(
    ("left", "metadata"), [("nothing", "true"), ("a part", "false"), ("all but the last byte", "true")]
)
@kinds
def test_content_of_a_completed_write_that_is_lost_is_never_passed_over(
    tmp_path: Path, version: str, kind: str, metadata: str, left: str
) -> None:
    given = make(tmp_path, version, kind, **{"hoodie.metadata.enable": metadata})
    table = hf.HudiTable.open(tmp_path)
    first, last = (table.history()["instant"][at].as_py() for at in (0, 1))
    hurt = files_of(tmp_path, last, first if kind == "MERGE_ON_READ" and version == "6" else "")[-1]
    content = hurt.read_bytes()
    hurt.write_bytes(content[: {"nothing": 0, "a part": len(content) // 2}.get(left, len(content) - 1)])
    with pytest.raises(hf.HudiError) as caught:
        table.to_arrow()
    assert hurt.name in str(caught.value)
    merge = {
        "COPY_ON_WRITE": lambda: hf.write(plain_rows(range(8), ts=3, text="c"), tmp_path, given),
        "MERGE_ON_READ": lambda: table.services.compact({**given, "hoodie.compact.inline.max.delta.commits": "1"}),
    }[kind]
    with pytest.raises(hf.HudiError):
        merge()
    with pytest.raises(hf.HudiError):
        table.to_arrow()
    assert not table.services.validate().ok
    named = [(one.instant, one.path) for one in table.services.plan_repair().findings if one.kind == "lost content"]
    assert named == [(last, str(hurt.relative_to(tmp_path)))]
    table.services.repair()
    assert hurt.exists()


@kinds
def test_a_metadata_table_that_is_built_anew_hides_no_loss(tmp_path: Path, version: str, kind: str) -> None:
    given = make(tmp_path, version, kind, **{"hoodie.metadata.enable": "false"})
    table = hf.HudiTable.open(tmp_path)
    first, last = (table.history()["instant"][at].as_py() for at in (0, 1))
    hurt = files_of(tmp_path, last, first if kind == "MERGE_ON_READ" and version == "6" else "")[-1]
    hurt.write_bytes(b"")
    with pytest.raises(hf.CorruptTableError, match="lost rows") as caught:
        hf.write(plain_rows([100]), tmp_path, {**given, "hoodie.metadata.enable": "true"})
    assert hurt.name in str(caught.value)
    with pytest.raises(hf.HudiError):
        table.to_arrow()
