"""File systems of fsspec: what they promise is found out, and tables live there accordingly."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.storage.fsspec_store import FsspecStore, Promises, try_out
from tests.storage.rivals import winners
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows


class ChecksThenWrites(LocalFileSystem):
    """Creates "exclusively" as many servers' clients do."""

    protocol = "checks"

    def open(self, path: str, mode: str = "rb", *args: Any, **more: Any) -> Any:
        if mode == "xb":
            if self.exists(path):
                raise FileExistsError(path)
            time.sleep(0.01)
            mode = "wb"
        return super().open(path, mode, *args, **more)


class CopiesToRename(LocalFileSystem):
    """Renames by copying part after part."""

    protocol = "copies"

    def mv(self, path1: str, path2: str, **more: Any) -> None:
        data = Path(path1).read_bytes()
        with open(path2, "wb", buffering=0) as sink:
            for start in range(0, len(data), 4096):
                sink.write(data[start : start + 4096])
                time.sleep(0.0001)
        self.rm_file(path1)


class ListsLate(LocalFileSystem):
    """Lists only what is older than a second."""

    protocol = "late"

    def ls(self, path: str, detail: bool = False, **more: Any) -> Any:
        found = [one for one in super().ls(path, detail=True) if one["mtime"] < time.time() - 1]
        return found if detail else [one["name"] for one in found]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (LocalFileSystem, Promises(True, "rename", True)),
        (MemoryFileSystem, Promises(True, "pipe", True)),
        (ChecksThenWrites, Promises(False, "rename", True)),
        (CopiesToRename, Promises(True, "", True)),
        (ListsLate, Promises(True, "rename", False)),
    ],
)
def test_promises_are_found_out(kind: type, expected: Promises, tmp_path: Path) -> None:
    fs, folder = kind(), f"{tmp_path}/trial"
    fs.makedirs(folder)
    assert try_out(fs, folder) == expected


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        (ChecksThenWrites, hf.ConfigError, "checks:// needs the storage option single_writer=true"),
        (CopiesToRename, hf.UnsupportedFeatureError, "shows readers parts of a file"),
        (ListsLate, hf.UnsupportedFeatureError, "lists new files late"),
    ],
)
def test_what_is_missing_is_refused_before_anything_is_written(
    kind: type, error: type[Exception], said: str, tmp_path: Path
) -> None:
    fsspec.register_implementation(kind.protocol, kind, clobber=True)
    path = f"{kind.protocol}://{tmp_path}/{kind.protocol}"
    with pytest.raises(error, match=said):
        hf.write(plain_rows(range(3)), path, options())
    assert list(tmp_path.iterdir()) == []


def test_one_writer_may_do_without_exclusion(tmp_path: Path) -> None:
    fsspec.register_implementation("checks", ChecksThenWrites, clobber=True)
    path, alone = f"checks://{tmp_path}/t", {"single_writer": "true"}
    for ts in (1, 2):
        hf.write(plain_rows(range(ts * 3), ts=ts), path, options(), storage_options=alone)
    assert len(table_rows(tmp_path / "t")) == 6
    with pytest.raises(hf.ConfigError, match="single_writer must be true or false"):
        Storage(path, {"single_writer": "perhaps"})


@pytest.mark.slow
@pytest.mark.parametrize("form", ["memory://{name}/t", "local://{folder}/t"])
def test_tables_live_where_promises_are_kept(form: str, tmp_path: Path) -> None:
    path = form.format(name=uuid.uuid4().hex, folder=tmp_path)
    settings = {**options(), "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    for ts in (1, 2):
        hf.write(plain_rows(range(4), ts=ts, text=f"{ts}-"), path, settings)
    table = hf.HudiTable.open(path)
    assert len(table.services.compact(options=settings).instants) == 1
    last = table.upsert(plain_rows([1], ts=5, text="5-"), settings)
    table.services.rollback(last.instant)
    assert {row[2][:2] for row in table_rows(path).values()} == {"2-"}
    assert table.services.validate().differences.num_rows == 0
    assert_tidy(path)
    with pytest.raises(hf.UnsupportedFeatureError, match="cannot go to version 6"):
        table.services.upgrade(6)


def test_a_claim_of_a_writer_that_ended_is_named(tmp_path: Path) -> None:
    fs = LocalFileSystem()
    store = FsspecStore(fs, "local", str(tmp_path), single_writer=False)
    (tmp_path / ".f.claim").touch()
    with pytest.raises(FileExistsError, match=r"delete .*/\.f\.claim"):
        store.create(f"{tmp_path}/f", b"x")
    (tmp_path / ".f.claim").unlink()
    won = winners(lambda number: store.create(f"{tmp_path}/f", b"%d" % number))
    assert (tmp_path / "f").read_bytes() == b"%d" % won[0]
    assert len(won) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["f"]


def test_spark_does_not_write_to_the_memory_of_a_process() -> None:
    from hudi_fast.spark.storage import storage_of

    with pytest.raises(hf.UnsupportedFeatureError, match="memory of one process"):
        storage_of(None, "memory://x/t")
