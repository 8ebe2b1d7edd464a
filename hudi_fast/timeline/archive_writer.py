"""Instants are put into the archived timeline.

Source: LSMTimelineWriter, TimelineArchiverV1, releases 1.2.0 and 0.15.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_fast.config.archive_options import ArchiveOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archived import ArchivedInstant

__all__ = ["append_archive"]


def append_archive(
    storage: Storage, config: TableConfig, rows: Sequence[ArchivedInstant], options: ArchiveOptions
) -> list[str]:
    """Add instants to the archive, in the form of the table's layout; paths of the files that hold them."""
    raise NotImplementedError
