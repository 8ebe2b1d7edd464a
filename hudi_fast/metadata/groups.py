"""Writing one file group of a metadata table: sorted, unique keys into one log file, or into a base file when building.

::

    keys, values (null = delete) ─► sorted by bytes, one entry per key
        ─► log file   .<file id>_<instant>.log.<n>_<token>   HFILE_DATA block, DELETE block        an update
        ─► base file  <file id>_<token>_<instant>.hfile                                            a build
        ─► WriteStat

A :class:`GroupWriter` is a value that tasks get: it knows every group's file id and where its log stands, so that
nothing is listed while records are written. Within one commit an entry beats a delete of the same key: rows that move
between partitions bring both.

Sources: HoodieAppendHandle, HoodieHFileDataBlock, HoodieMetadataTableValidator's view of groups, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat

__all__ = ["GroupTarget", "GroupWriter"]


@dataclass(frozen=True, slots=True)
class GroupTarget:
    """Where the records of one file group go.

    Attributes:
        file_id: of the group.
        base_instant: where its newest slice begins; empty when it has none yet.
        base_file: name of the slice's base file; empty when it has none.
        log_version: largest version of the slice's log files; 0 for none.
    """

    file_id: str
    base_instant: str = ""
    base_file: str = ""
    log_version: int = 0


@dataclass(frozen=True, slots=True)
class GroupWriter:
    """Writes records of one metadata table commit, group by group; picklable, for tasks on any machine.

    Attributes:
        storage: of the metadata table.
        config: of the metadata table.
        instant: requested time of the commit.
        schema: Avro schema of the values as JSON, meta columns included.
        targets: (metadata table partition, data partition or None) to its groups, in order of their numbers. The data
            partition is given for a partitioned record index alone.
        building: base files rather than log files.
    """

    storage: Storage
    config: TableConfig
    instant: str
    schema: str
    targets: Mapping[tuple[str, str | None], tuple[GroupTarget, ...]]
    building: bool = False

    def group_count(self, partition: str, data_partition: str | None = None) -> int:
        """How many file groups a partition of the metadata table has (for that partition of the data).

        Raises:
            KeyError: the commit does not write there.
        """
        return len(self.targets[partition, data_partition])

    def write(
        self, partition: str, group: int, keys: pa.Array, values: pa.Array, data_partition: str | None = None
    ) -> WriteStat:
        """Write all records of one group: at most one call per group and commit.

        Args:
            partition: of the metadata table.
            group: number of the file group.
            keys: string[n], in any order; keys may repeat where one entry and deletes meet.
            values: binary[n], Avro records; null deletes the key.
            data_partition: of a partitioned record index.

        Raises:
            InvalidDataError: two different entries with one key.
        """
        raise NotImplementedError
