"""The metadata table's ``files`` as a :class:`~hudi_fast.view.listing.Lister`: no data folder is listed."""

from __future__ import annotations

from hudi_fast.metadata.table import MetadataTable
from hudi_fast.storage.base import FileStat

__all__ = ["MetadataLister"]


class MetadataLister:
    """Answers from the metadata table; from folders, with a warning, once that turns out to be damaged. Picklable.

    Args:
        table: a metadata table with a usable partition ``files``.
    """

    def __init__(self, table: MetadataTable) -> None:
        self.table = table

    def partitions(self) -> list[str]:
        """All partition paths, sorted; ``""`` is the one of a table without partitions."""
        raise NotImplementedError

    def files(self, partition: str) -> list[FileStat]:
        """All files of a partition; empty when the partition is unknown."""
        raise NotImplementedError
