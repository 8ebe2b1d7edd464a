"""What storage fails to do, as an error of hudi_fast."""

from __future__ import annotations

import errno
import os
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.storage.conditional import ThrottledError
from hudi_fast.storage.failures import is_failure, naming_file, storage_failure, telling_failures, tells_failures


@pytest.mark.parametrize(
    ("number", "kind", "advice"),
    [
        (errno.ENOSPC, hf.StorageFailedError, "Free space on the disk"),
        (errno.EDQUOT, hf.StorageFailedError, "quota"),
        (errno.EIO, hf.StorageFailedError, "Check the disk"),
        (errno.EMFILE, hf.StorageFailedError, "ulimit -n"),
        (errno.EROFS, hf.StorageFailedError, "Mount the disk for writing"),
        (errno.EACCES, hf.StorageAccessError, "rights"),
        (errno.EPERM, hf.StorageAccessError, "rights"),
        (errno.EBUSY, hf.StorageFailedError, "Run it again"),
    ],
)
def test_the_number_of_an_error_decides_what_to_do(number: int, kind: type[hf.HudiError], advice: str) -> None:
    cause = OSError(number, os.strerror(number), "/t/.hoodie/x")
    with pytest.raises(kind, match=f"compact.. of /t .*{os.strerror(number)}.*/t/.hoodie/x.*{advice}") as caught:
        with telling_failures("compact() of /t"):
            raise cause
    assert isinstance(caught.value, OSError)
    assert caught.value.__cause__ is cause
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_errors_of_hudi_fast_are_told_as_they_are() -> None:
    for error in (hf.CommitError("x"), hf.StorageUnreachableError("y"), hf.StorageAccessError("z")):
        with pytest.raises(type(error)) as caught, telling_failures("clean() of /t"):
            raise error
        assert caught.value is error
    known = hf.StorageUnreachableError("y")
    assert storage_failure(known, "clean() of /t") is known


def test_verbs_of_a_class_tell_of_their_storage() -> None:
    class Place:
        uri = "/t"

    @tells_failures
    class Verbs:
        _storage = Place()

        def clean(self, *, text: str = "full") -> None:
            """What it does."""
            raise OSError(errno.ENOSPC, text)

        def _inner(self) -> None:
            raise OSError("inner")

    with pytest.raises(hf.StorageFailedError, match=r"clean\(\) of /t failed because of storage: .*none"):
        Verbs().clean(text="none")
    with pytest.raises(OSError, match="inner") as caught:
        Verbs()._inner()
    assert not isinstance(caught.value, hf.HudiError)
    assert Verbs.clean.__doc__ == "What it does."


def test_a_failure_of_storage_is_no_damage() -> None:
    for error in (OSError(errno.EIO, "x"), PermissionError(errno.EACCES, "x"), ThrottledError("x")):
        assert is_failure(error)
    for damage in (OSError("Couldn't deserialize thrift"), FileNotFoundError(errno.ENOENT, "x"), ValueError("x")):
        assert not is_failure(damage)


def test_a_file_is_named_once() -> None:
    for error in (OSError(errno.ENOSPC, "Error writing bytes"), OSError(errno.ENOSPC, "full", "/t/p/f.parquet")):
        with pytest.raises(OSError, match=r"p/f\.parquet") as caught, naming_file("p/f.parquet"):
            raise error
        assert str(caught.value).count("f.parquet") == 1


def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a file fails from now on, as a disk does."""

    def fail(_: Storage, path: str, *__: object, **___: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(Storage, "open_input", fail)


LAZY: dict[str, Callable[[hf.HudiTable], Callable[[], object]]] = {
    "to_batches": lambda table: table.to_batches().read_all,
    "cdc_batches": lambda table: table.cdc_batches("earliest").read_all,
    "scan, table": lambda table: table.scan().to_table,
    "scan, batches": lambda table: partial(list, table.scan().to_batches()),
    "scan, head": lambda table: partial(table.scan().head, 1),
    "scan, expression": lambda table: table.scan().scanner({"twice": pc.field("v") * 2}).to_table,
}


@pytest.mark.parametrize("way", LAZY)
def test_rows_that_are_read_later_tell_of_storage(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.table.cdc.enabled": "true",
    }
    for value in (1, 2):
        hf.write(pa.table({"id": [1, 2], "v": [value, value]}), tmp_path, settings)
    read = LAZY[way](hf.HudiTable.open(tmp_path))
    broken(monkeypatch)
    with pytest.raises(hf.StorageFailedError, match=f"{tmp_path} failed because of storage: .*Check the disk"):
        read()
