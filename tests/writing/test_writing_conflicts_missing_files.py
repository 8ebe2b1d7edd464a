"""The conflict behind a file that another process removed."""

from __future__ import annotations

from pathlib import Path

import hudi_fast as hf
from hudi_fast.errors import FileGoneError
from hudi_fast.storage.base import Storage
from hudi_fast.writing.conflicts import conflict_of_missing_file
from tests.support.small_tables import options, plain_rows

ID = "11111111-1111-1111-1111-111111111111-0"
GONE = FileGoneError("It is gone.", f"p0/{ID}_0-0-0_20240101000000000.parquet")


def test_the_last_instant_that_removed_files_and_the_file_group_are_named(tmp_path: Path) -> None:
    for ts in (1, 2, 3):
        hf.write(plain_rows(range(4), ts=ts), tmp_path, {**options(), "hoodie.clean.automatic": "false"})
    before = conflict_of_missing_file(Storage(tmp_path), GONE)
    assert before.other is None
    clean = hf.HudiTable.open(tmp_path).services.clean(options={"hoodie.clean.commits.retained": "1"})
    conflict = conflict_of_missing_file(Storage(tmp_path), GONE)
    assert conflict.other == clean.instant
    assert conflict.file_groups == (("p0", ID),)
    assert clean.instant in str(conflict)


def test_a_file_that_is_no_data_file_has_no_file_group(tmp_path: Path) -> None:
    hf.write(plain_rows([0]), tmp_path, options())
    assert conflict_of_missing_file(Storage(tmp_path), FileGoneError("It is gone.", "other")).file_groups == ()
