"""Folders and Hudi tables as sources of a streamer on Spark.

The driver chooses files and commits as the one-process engine does. Tasks read the files with its functions, so columns
and refusals are the same. Commits are read as ``hf.read`` reads them on Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_fast.formats.avro.schema import is_meta_field
from hudi_fast.reading.incremental.stream import StreamQuery
from hudi_fast.storage.base import Storage
from hudi_fast.streamer.messages import Rejected
from hudi_fast.streamer.on_spark.transforms import UnitRows
from hudi_fast.streamer.places import open_place
from hudi_fast.streamer.settings import StreamSettings
from hudi_fast.streamer.sources.folder import FolderSource, common_schema
from hudi_fast.streamer.sources.hudi_table import HudiTableSource

__all__ = ["SparkFolderSource", "SparkHudiTableSource", "pass_over"]


def pass_over(rejected: Sequence[Rejected]) -> None:
    """Leave messages out, which the driver has noted already."""


@dataclass(frozen=True, slots=True)
class SparkFolderSource(FolderSource):
    """A source of files that tasks read.

    Attributes:
        spark: the session.
    """

    spark: Any = field(default=None, repr=False)

    def rows(self, paths: Sequence[str]) -> Any:
        """The rows of files. Without a schema, tasks read the columns of all files first.

        Args:
            paths: of files in the folder, one at least.

        Raises:
            InvalidDataError: as :meth:`FolderSource.fetch`.
            SourceError: as :meth:`FolderSource.fetch`.
        """
        files = FolderSource(self.storage, self.format, self.schema, self.csv, self.settle_seconds)
        schema = self.schema
        if schema is None or self.takes is not None:
            found = self._looked_at(files, paths)
            schema = schema or common_schema(self.storage, found)
        if self.takes is not None:
            files = replace(files, takes=pass_over)
        return UnitRows(list(paths), partial(_rows, files, schema), schema, f"The folder {self.storage.uri}")

    def _looked_at(self, files: FolderSource, paths: Sequence[str]) -> list[tuple[str, pa.Schema]]:
        """The columns of files; what cannot be read in them is taken."""
        from hudi_fast.spark.turn_rows import answers_of

        answers = answers_of(self.spark, list(paths), partial(_look_at, files, self.takes is not None))
        rejected = [one for _, found in answers for one in found]
        if self.takes is not None and rejected:
            self.takes(rejected)
        return [(path, schema) for path, (schema, _) in zip(paths, answers, strict=True)]


def _look_at(files: FolderSource, takes: bool, path: str) -> tuple[pa.Schema, list[Rejected]]:
    rejected: list[Rejected] = []
    return (replace(files, takes=rejected.extend) if takes else files).schema_of(path), rejected


def _rows(files: FolderSource, schema: pa.Schema, path: str) -> Iterator[pa.RecordBatch]:
    return iter(files.rows_as([path], schema))


class SparkHudiTableSource(HudiTableSource):
    """A source of commits that Spark reads.

    Args:
        spark: the session.
        settings: of the streamer.
        version: of the fed table; it decides what positions are.
        storage_options: how to reach the other table.

    Raises:
        ConfigError: a property is missing or wrong.
    """

    def __init__(
        self, spark: Any, settings: StreamSettings, version: int, storage_options: Mapping[str, Any] | None
    ) -> None:
        self._spark = spark
        super().__init__(settings, version, storage_options)

    def _opened(self, path: str, storage_options: Mapping[str, Any] | None) -> Storage:
        return open_place(self._spark, path, storage_options)

    def _rows(self, begin: str, end: str) -> Any:
        from hudi_fast.spark.reading.reader import read

        rows = read(self._storage, self._spark, StreamQuery.batch_options(self._options, begin, end), None, None)
        return rows.drop(*(name for name in rows.columns if is_meta_field(name)))
