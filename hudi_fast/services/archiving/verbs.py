"""``HudiTable.services``: archiving."""

from __future__ import annotations

from hudi_fast.services.archiving.plan import ArchivePlan
from hudi_fast.services.archiving.run import ArchiveResult, archive, plan_archive
from hudi_fast.services.verbs import Options, ServiceVerbs, check_plan

__all__ = ["ArchivingVerbs"]


class ArchivingVerbs(ServiceVerbs):
    """Moving old instants off the active timeline."""

    def plan_archive(self, options: Options | None = None) -> ArchivePlan:
        """The instants that :meth:`archive` would archive now, and why no more; nothing is written.

        Args:
            options: ``hoodie.keep.min.commits`` and ``.max.commits``, ``hoodie.archive.beyond.savepoint``, what
                cleaning retains, and when compaction is due: instants that those need stay.

        Raises:
            ConfigError: an option is wrong.
        """
        return plan_archive(self._session(options))

    def archive(self, options: Options | None = None, plan: ArchivePlan | None = None) -> ArchiveResult:
        """Move the oldest instants from the active timeline to the archived one.

        With more than ``hoodie.keep.max.commits`` complete writes, the oldest of them leave until
        ``hoodie.keep.min.commits`` stay, and cleans and rollbacks with them; the metadata table's timeline follows. No
        row changes. Writers wait meanwhile.

        Args:
            options: as for :meth:`plan_archive`, and how the files of the archive are kept.
            plan: archive exactly these.

        Raises:
            CommitConflictError: ``plan`` no longer fits the table. Nothing was changed.
            CommitError: storage failed; no instant is lost, and the next run goes on.
            ConfigError: an option is wrong.
            LockTimeoutError: others held the table's lock.
        """
        check_plan(plan, ArchivePlan)
        return archive(self._session(options), plan)
