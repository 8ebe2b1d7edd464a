"""Mistakes in the timeline: the order of instants, their states, the archive, the bodies of commits."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["TIMELINE"]

TIMELINE = (
    Mutant(
        name="timeline-savepoint-begins-the-active-timeline",
        file="hudi_fast/timeline/instants.py",
        before="first = min((time for time in writes if time not in saved), default=min(writes, default=None))",
        after="first = min(writes, default=None)",
        harm="If archiving leaves out a savepoint, the rows of archived writes after it are not read.",
        near=("tests/timeline/test_timeline_active.py", "tests/services/test_services_archiving_run.py"),
    ),
    Mutant(
        name="timeline-overlapping-compactions-are-mistaken",
        file="hudi_fast/timeline/instants.py",
        before="any(one > compaction and start <= end for one, start in begun)",
        after="any(one > compaction and start > end for one, start in begun)",
        harm="On a table of version 6 keys that were logged while a compaction ran are inserted a second time.",
        near=("tests/timeline/test_timeline_active.py", "tests/writing/test_writing_logged_early.py"),
    ),
    Mutant(
        name="timeline-new-times-ignore-completion-times",
        file="hudi_fast/timeline/instants.py",
        before='for time in (i.requested, i.completion or "")',
        after="for time in (i.requested,)",
        harm="A write after the clock was set back has a time before that of a complete write.",
        near=("tests/timeline/test_timeline_active.py", "tests/timeline/test_timeline_clock.py"),
    ),
    Mutant(
        name="timeline-clock-gives-a-time-twice",
        file="hudi_fast/timeline/clock.py",
        before="self._last = now if now > newest else _one_later(newest)",
        after="self._last = now if now >= newest else _one_later(newest)",
        harm="Two writes within a millisecond have one instant, and one of them fails.",
        near=("tests/timeline/test_timeline_clock.py",),
    ),
    Mutant(
        name="timeline-commits-what-is-no-longer-inflight",
        file="hudi_fast/timeline/transition.py",
        before="    _require(storage, config, with_state(instant, State.INFLIGHT))\n",
        after="",
        harm="A write that another process has rolled back becomes visible without its files.",
        near=("tests/timeline/test_timeline_transition.py",),
    ),
    Mutant(
        name="timeline-archive-leaves-out-the-end-of-a-file",
        file="hudi_fast/timeline/archive/lsm_archive.py",
        before="self.last >= begin",
        after="self.last > begin",
        harm="The completion time of an archived write is unknown, so its log rows may be lost.",
        near=("tests/timeline/test_timeline_archive_lsm_reader.py", "tests/timeline/test_timeline_archived.py"),
    ),
    Mutant(
        name="timeline-inflight-commits-forget-base-instants",
        file="hudi_fast/timeline/commit_metadata.py",
        before="WriteStat(file_id=file_id, prev_commit=base, num_update_writes=rows, partition_path=partition)",
        after="WriteStat(file_id=file_id, num_update_writes=rows, partition_path=partition)",
        harm="On a table of version 6 a rollback without markers leaves the log files of the failed write.",
        near=("tests/timeline/test_timeline_commit_metadata.py", "tests/writing/test_writing_mor_cleanup.py"),
    ),
    Mutant(
        name="timeline-heartbeats-of-this-machine-do-not-count",
        file="hudi_fast/timeline/heartbeat.py",
        before="if rule.shared or not storage.is_local:",
        after="if not storage.is_local:",
        harm="With concurrent writers on one machine a clean rolls back a write that is still running.",
        near=("tests/services/test_services_heartbeat.py", "tests/services/test_services_liveness.py"),
    ),
)
