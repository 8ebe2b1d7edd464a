"""What base files of ORC and Lance have in common: rows of every type, empty files, damage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_fast.errors import CorruptTableError, FileGoneError
from hudi_fast.formats.lance.base_file import open_lance_file
from hudi_fast.formats.orc.read import open_orc_file
from hudi_fast.storage.base import Storage
from tests.formats import lance_rows, orc_rows


@dataclass(frozen=True)
class Base:
    """A format of base files.

    Attributes:
        rows: rows with a column of every type.
        write: writes tables into the file ``p/a`` of a folder.
        open: opens a file.
        suffix: of the file.
        nested: a column whose values have parts.
        magic: first bytes of a file, or its last.
        keys: what ``write`` puts into the footer.
        few: whether the file has no more row groups than one.
    """

    rows: pa.Table
    write: Callable[[Path, list[pa.Table]], object]
    open: Callable[[Storage, str], Any]
    suffix: str
    nested: str
    magic: bytes
    keys: object
    few: bool = True


def in_orc(codec: str) -> Base:
    stripe_bytes = 1 << 16 if codec == "none" else 1 << 20

    def write(folder: Path, tables: list[pa.Table]) -> object:
        return orc_rows.written(folder, tables, codec, stripe_bytes)

    return Base(orc_rows.ROWS, write, open_orc_file, "orc", "moments", b"ORC", orc_rows.KEYS, codec != "none")


def write_lance(folder: Path, tables: list[pa.Table]) -> None:
    assert lance_rows.written(Storage(folder), tables) == (folder / "p" / "a.lance").stat().st_size


ORC = pytest.param(in_orc("zstd"), id="orc")
LANCE = pytest.param(
    Base(lance_rows.ROWS, write_lance, open_lance_file, "lance", "vector", b"LANC", lance_rows.KEYS), id="lance"
)
CODECS = [pytest.param(in_orc(codec), id=f"orc-{codec}") for codec in ("zlib", "snappy", "lz4", "none")]


@pytest.mark.parametrize("base", [ORC, *CODECS, LANCE])
def test_rows_of_every_type_come_back_in_their_order_and_types(base: Base, tmp_path: Path) -> None:
    parts = [base.rows, base.rows.slice(1, 5), base.rows.slice(0, 0)]
    storage, expected, names = Storage(tmp_path), pa.concat_tables(parts), base.rows.column_names
    base.write(tmp_path, parts)
    assert [one.name for one in (tmp_path / "p").iterdir()] == [f"a.{base.suffix}"]
    with base.open(storage, f"p/a.{base.suffix}") as reader:
        assert (reader.schema, reader.num_rows, reader.metadata) == (base.rows.schema, 14, None)
        assert reader.location == (storage, f"p/a.{base.suffix}")
        assert (reader.num_row_groups == 1) == base.few
        assert sum(reader.row_group_rows()) == 14
        found = reader.read(names)
        found.validate(full=True)
        assert found.equals(expected)
        assert reader.read(["parts", "at"]).equals(expected.select(["parts", "at"]))
        batches = list(reader.batches(["key", base.nested], 4))
        assert pa.Table.from_batches(batches).equals(expected.select(["key", base.nested]))
        assert max(one.num_rows for one in batches) == 4
        sizes = [one.num_rows for one in reader.batches([], 4)]
        assert sizes == [4, 4, 4, 2] if base.few else sum(sizes) == 14
        last = reader.num_row_groups - 1
        assert reader.read(["key"], [last]).num_rows == reader.row_group_rows()[last]
        assert reader.read(["key"], []).num_rows == 0
        assert reader.footer() == base.keys


@pytest.mark.parametrize("base", [ORC, LANCE])
def test_a_file_without_rows_has_columns_and_keys(base: Base, tmp_path: Path) -> None:
    base.write(tmp_path, [base.rows.slice(0, 0)])
    with base.open(Storage(tmp_path), f"p/a.{base.suffix}") as reader:
        assert (reader.schema, reader.num_rows, reader.num_row_groups) == (base.rows.schema, 0, 0)
        assert reader.footer() == base.keys
        assert reader.read(["at"]).num_rows == len(list(reader.batches(["at"]))) == 0


@pytest.mark.parametrize("base", [ORC, LANCE])
def test_a_missing_cut_or_foreign_file_is_an_error_that_names_it(base: Base, tmp_path: Path) -> None:
    base.write(tmp_path, [base.rows])
    storage, name = Storage(tmp_path), f"b.{base.suffix}"
    raw = (tmp_path / "p" / f"a.{base.suffix}").read_bytes()
    with pytest.raises(FileGoneError, match=rf"b\.{base.suffix}"):
        base.open(storage, name)
    for content in (b"", base.magic, raw[:-1], raw[: len(raw) // 2], b"PAR1" + bytes(100) + b"PAR1"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CorruptTableError, match=rf"b\.{base.suffix}"):
            base.open(storage, name)
