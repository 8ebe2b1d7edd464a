"""``HudiTable.services``: archiving."""

from __future__ import annotations

from hudi_fast.services.archiving.plan import ArchivePlan
from hudi_fast.services.archiving.run import ArchiveResult, archive, plan_archive
from hudi_fast.services.verbs import Options, ServiceVerbs, check_plan

__all__ = ["ArchivingVerbs"]


class ArchivingVerbs(ServiceVerbs):
    """Moving old instants off the active timeline."""

    def plan_archive(self, options: Options | None = None) -> ArchivePlan:
        """List the instants that :meth:`archive` would archive now, and the reason for the limit; nothing is written.

        Args:
            options: ``hoodie.keep.min.commits`` and ``.max.commits``, ``hoodie.archive.beyond.savepoint``, retention of
                cleaning, and trigger of compaction: instants that cleaning or compaction needs stay.

        Raises:
            ConfigError: an option is wrong.
        """
        return plan_archive(self._session(options))

    def archive(self, options: Options | None = None, plan: ArchivePlan | None = None) -> ArchiveResult:
        """Move the oldest instants from the active timeline to the archived one.

        With more than ``hoodie.keep.max.commits`` complete writes, the oldest are archived until
        ``hoodie.keep.min.commits`` remain. Cleans and rollbacks between them are archived, too, and then instants of
        the metadata table. No row changes. Writers wait until the archiving ends.

        Args:
            options: as for :meth:`plan_archive`, and options for the files of the archive.
            plan: archive exactly these instants.

        Raises:
            CommitConflictError: ``plan`` no longer fits the table. Nothing was changed.
            CommitError: storage failed; no instant is lost, and the next run continues.
            ConfigError: an option is wrong.
            LockTimeoutError: other processes held the table's lock.
        """
        check_plan(plan, ArchivePlan)
        return archive(self._session(options), plan)
