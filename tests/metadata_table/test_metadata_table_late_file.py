"""Files that are written at once or as a stream: the content is the same, and a failure leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_fast.metadata_table.updates import groups as module
from hudi_fast.metadata_table.updates.groups import late_file
from hudi_fast.storage.base import Storage


@pytest.mark.parametrize("whole", [0, 5, 1000])
def test_content_does_not_depend_on_how_it_is_written(
    tmp_path: Path, whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WHOLE_BYTES", whole)
    with late_file(Storage(tmp_path), "f") as sink:
        for part in (b"ab", memoryview(b"cdef"), b"", b"g"):
            sink.write(part)
    assert sink.size == 7
    assert (tmp_path / "f").read_bytes() == b"abcdefg"


@pytest.mark.parametrize("whole", [0, 1000])
def test_an_error_leaves_the_file_as_it_was(tmp_path: Path, whole: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WHOLE_BYTES", whole)
    (tmp_path / "f").write_bytes(b"before")

    def fail() -> None:
        with late_file(Storage(tmp_path), "f") as sink:
            sink.write(b"abc")
            raise RuntimeError("out of disk")

    with pytest.raises(RuntimeError):
        fail()
    assert [one.name for one in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_bytes() == b"before"
