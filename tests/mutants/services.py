"""Mistakes in table services: compaction, clustering, cleaning, archiving, recovery, upgrades."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["SERVICES"]

SERVICES = (
    Mutant(
        name="services-compaction-takes-groups-of-a-clustering",
        file="hudi_fast/services/compact_plan.py",
        before="taken = {*pending, *view.pending_groups}",
        after="taken = {*pending}",
        harm="A compaction and a clustering rewrite one file group, and the rows are stored twice.",
        near=("tests/services/test_services_compaction.py", "tests/services/test_services_clustering_run.py"),
    ),
    Mutant(
        name="services-compaction-leaves-new-keys-out-of-the-bloom-filter",
        file="hudi_fast/services/merge_slices.py",
        before="output.footer.add(table.column(RECORD_KEY).combine_chunks())",
        after="output.footer.carry(table.column(RECORD_KEY))",
        harm="With bloom filters a query for a key skips the base file to which a compaction brought the key.",
        near=("tests/services/test_services_compaction.py", "tests/services/test_services_compaction_golden.py"),
    ),
    Mutant(
        name="services-writes-since-are-counted-by-requested-time",
        file="hudi_fast/services/compact_plan.py",
        before="if one.requested != start.requested and (one.completion or one.requested) > start.requested",
        after="if one.requested > start.requested",
        harm="A clustering completes although a write changed its rows, and that write is lost.",
        near=(
            "tests/services/test_services_compaction_triggers.py",
            "tests/services/test_services_clustering_conflicts.py",
        ),
    ),
    Mutant(
        name="services-clean-deletes-the-slice-of-the-earliest-commit",
        file="hudi_fast/services/retention.py",
        before="return slices[seen + 1 :]",
        after="return slices[max(seen, 1) :]",
        harm="A query as of the earliest retained commit misses rows.",
        near=("tests/services/test_services_cleaning_retention.py", "tests/services/test_services_cleaning.py"),
    ),
    Mutant(
        name="services-clean-deletes-what-a-compaction-is-to-read",
        file="hudi_fast/services/retention.py",
        before="if begins is not None and slice_.begins >= begins:",
        after="if begins is not None and slice_.begins > begins:",
        harm="A pending compaction fails for good because the files of its plan are gone.",
        near=("tests/services/test_services_cleaning_retention.py", "tests/services/test_services_cleaning.py"),
    ),
    Mutant(
        name="services-clean-deletes-folders-of-pending-writes",
        file="hudi_fast/services/clean.py",
        before="    if timeline.pending_writes:\n        return []\n",
        after="",
        harm="A concurrent insert into a partition that a clean empties is not listed by the metadata table.",
        near=("tests/services/test_services_cleaning_partitions.py", "tests/services/test_services_cleaning_run.py"),
    ),
    Mutant(
        name="services-archive-forgets-replaced-files",
        file="hudi_fast/services/archive.py",
        before="bound = _replaced_files_left(state, plan.instants)",
        after="bound = None",
        harm="Rows that an overwrite or a clustering replaced are read again once it is archived.",
        near=("tests/services/test_services_archiving_run.py",),
    ),
    Mutant(
        name="services-archive-deletes-before-it-writes",
        file="hudi_fast/services/archive.py",
        before=(
            "        written += len(append_archive(storage, config, rows, options, require_lock))\n"
            "        require_lock()\n"
            "        delete_instants(storage, there)\n"
        ),
        after=(
            "        require_lock()\n"
            "        delete_instants(storage, there)\n"
            "        written += len(append_archive(storage, config, rows, options, require_lock))\n"
        ),
        harm="If the process dies while it archives, commits are on neither timeline.",
        near=("tests/services/test_services_archiving_run.py", "tests/faults/test_faults_archive.py"),
    ),
    Mutant(
        name="services-clustering-takes-groups-of-a-compaction",
        file="hudi_fast/services/clustering/cluster_plan.py",
        before="planned = group in view.pending_groups or group in view.pending_compactions or group in",
        after="planned = group in view.pending_groups or group in",
        harm="A clustering replaces a file group that a pending compaction brings back.",
        near=("tests/services/test_services_clustering_plan.py", "tests/services/test_services_clustering_run.py"),
    ),
    Mutant(
        name="services-restore-undoes-the-oldest-first",
        file="hudi_fast/services/restore.py",
        before='completed.sort(key=lambda one: (one.completion or "", one.requested), reverse=True)',
        after='completed.sort(key=lambda one: (one.completion or "", one.requested))',
        harm="A restore that is interrupted leaves later writes without the earlier ones that they build on.",
        near=("tests/services/test_services_recovery_restore.py",),
    ),
    Mutant(
        name="services-upgrade-moves-commits-behind-a-compaction",
        file="hudi_fast/services/upgrading/move.py",
        before="completion = _moved(following, -1)",
        after="completion = _moved(following, 1)",
        harm="After an upgrade to version 8 log rows are merged with a base file that has them already.",
        near=("tests/services/test_services_upgrading.py",),
    ),
    Mutant(
        name="services-failure-of-an-inline-service-is-swallowed",
        file="hudi_fast/services/inline.py",
        before="if not step.raises(session.settings):",
        after="if step.raises(session.settings):",
        harm="A write reports success although the options make a failed service an error.",
        near=("tests/services/test_services_inline.py",),
    ),
)
