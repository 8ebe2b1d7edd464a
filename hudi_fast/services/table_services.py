"""``HudiTable.services``: the verbs of all table services."""

from __future__ import annotations

from hudi_fast.services.archiving.verbs import ArchivingVerbs
from hudi_fast.services.cleaning.verbs import CleaningVerbs
from hudi_fast.services.clustering.verbs import ClusteringVerbs
from hudi_fast.services.compaction.verbs import CompactionVerbs
from hudi_fast.services.indexing.verbs import IndexVerbs
from hudi_fast.services.recovery.verbs import RecoveryVerbs
from hudi_fast.services.repairing.verbs import RepairVerbs
from hudi_fast.services.scheduling.verbs import SchedulingVerbs
from hudi_fast.services.syncing.verbs import SyncVerbs
from hudi_fast.services.ttl.verbs import TtlVerbs
from hudi_fast.services.upgrading.verbs import UpgradeVerbs
from hudi_fast.services.validation.verbs import ValidationVerbs

__all__ = ["TableServices"]


class TableServices(
    CompactionVerbs,
    ClusteringVerbs,
    CleaningVerbs,
    ArchivingVerbs,
    RecoveryVerbs,
    IndexVerbs,
    ValidationVerbs,
    RepairVerbs,
    UpgradeVerbs,
    SchedulingVerbs,
    SyncVerbs,
    TtlVerbs,
):
    """The services of one table. Each call opens the table again.

    Args:
        storage: the table's storage.
        merger: merges rows of a table with the merge mode CUSTOM; else None.

    Example:
        >>> import pyarrow as pa, tempfile, hudi_fast as hf
        >>> path = tempfile.mkdtemp() + "/trips"
        >>> options = {"hoodie.table.name": "trips", "hoodie.datasource.write.recordkey.field": "id",
        ...            "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
        >>> for fare in (9.5, 4.0):
        ...     result = hf.write(pa.table({"id": [1], "fare": [fare]}), path, options)
        >>> services = hf.HudiTable.open(path).services
        >>> services.compact().updates
        1
        >>> services.compact().instant  # there is nothing left to compact
        ''
    """
