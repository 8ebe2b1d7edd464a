"""Opening the base files of the data table: whoever looks into one has it from here.

A file is what a reader of its rows means by it, not what lies on storage under its path.
"""

from __future__ import annotations

from hudi_fast.formats.parquet_base import BaseFileReader, open_base_file
from hudi_fast.storage.base import Storage
from hudi_fast.view.file_names import BaseFile
from hudi_fast.view.renamed_base import RenamedBase

__all__ = ["open_base"]


def open_base(storage: Storage, base: BaseFile) -> BaseFileReader:
    """Open a base file of a file group; its columns have today's names.

    Raises:
        CorruptTableError: the file is missing, cut short, or not Parquet.
    """
    stored = _open_as_stored(storage, base)
    return stored if base.names is None else RenamedBase(stored, base.names)


def _open_as_stored(storage: Storage, base: BaseFile) -> BaseFileReader:
    return open_base_file(storage, base.path)
