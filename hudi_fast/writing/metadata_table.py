"""A table's own metadata table, which this release does not keep up to date.

Apache Hudi trusts it blindly: a commit that is missing there makes rows vanish. So before the first write it is given
up, in the order that is safe at every moment: first the table's properties stop naming it, then its folder goes. The
next Apache Hudi writer builds it again.
"""

from __future__ import annotations

import warnings

from hudi_fast.config.properties_file import update_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import HudiWarning
from hudi_fast.storage.base import Storage

__all__ = ["METADATA_FOLDER", "drop_metadata_table"]

METADATA_FOLDER = ".hoodie/metadata"


def drop_metadata_table(storage: Storage, config: TableConfig) -> bool:
    """Give the metadata table up; False when there is none. Call it under the table's lock."""
    named = [*config.metadata_partitions, *config.metadata_partitions_inflight]
    if named:
        warnings.warn(
            f"The metadata table of {storage.uri} ({', '.join(sorted(named))}) is dropped, because hudi_fast does not "
            "keep it up to date yet; file listings replace it, and the next Apache Hudi writer builds it again.",
            HudiWarning,
            stacklevel=2,
        )
        update_properties(
            storage,
            {"hoodie.table.metadata.partitions": "", "hoodie.table.metadata.partitions.inflight": ""},
        )
    return storage.delete_dir(METADATA_FOLDER) or bool(named)
