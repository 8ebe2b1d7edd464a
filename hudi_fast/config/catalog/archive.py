"""Options of archiving: when instants are archived, and how archive files are merged.

Sources: ``HoodieArchivalConfig``, ``HoodieWriteConfig`` (1.2.0); merging of small archive files: 0.15.0.
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import Kind, Option

__all__ = ["ARCHIVE_OPTIONS"]

ARCHIVE_OPTIONS = (
    Option("hoodie.archive.automatic", Kind.BOOL, True, "Archive after a write when due."),
    Option(
        "hoodie.archive.async",
        Kind.BOOL,
        False,
        "With `hoodie.archive.automatic`: archiving after a write waits until the write has released the table's lock, "
        "and acquires it anew. The call still returns after archiving.",
    ),
    Option(
        "hoodie.keep.max.commits",
        Kind.INT,
        30,
        "Archive the oldest commits if the active timeline has more completed commits than this.",
        unit="commits",
        minimum=1,
    ),
    Option(
        "hoodie.keep.min.commits",
        Kind.INT,
        20,
        "Completed commits that archiving keeps on the active timeline.",
        unit="commits",
        minimum=1,
    ),
    Option(
        "hoodie.commits.archival.batch",
        Kind.INT,
        10,
        "Table version 6: maximum number of records (one per state of an instant) in one archive block.",
        unit="records",
        minimum=1,
    ),
    Option(
        "hoodie.archive.limit.instants",
        Kind.INT,
        None,
        "Table version 6: maximum number of instants that one run archives, the oldest first; unlimited by default. "
        "Apache Hudi 1.2 reads it for that version only.",
        unit="instants",
        minimum=0,
    ),
    Option(
        "hoodie.archive.beyond.savepoint",
        Kind.BOOL,
        False,
        "Also archive instants newer than the first savepoint; only savepointed commits are kept.",
    ),
    Option(
        "hoodie.archive.block.on.latest.clean.ectr",
        Kind.BOOL,
        False,
        "Table version 6: archive only commits before the earliest commit retained by the last clean.",
    ),
    Option(
        "hoodie.archive.merge.enable",
        Kind.BOOL,
        False,
        "Table version 6: merge small archive files.",
    ),
    Option(
        "hoodie.archive.merge.files.batch.size",
        Kind.INT,
        10,
        "Table version 6: number of small archive files to merge into one.",
        unit="files",
        minimum=2,
    ),
    Option(
        "hoodie.archive.merge.small.file.limit.bytes",
        Kind.INT,
        20 << 20,
        "Table version 6: archive files below this size are small.",
        unit="bytes",
        minimum=1,
    ),
    Option(
        "hoodie.timeline.compaction.batch.size",
        Kind.INT,
        10,
        "Number of archive files of one level to merge into one file of the next level.",
        unit="files",
        minimum=2,
    ),
    Option(
        "hoodie.timeline.compaction.target.file.max.bytes",
        Kind.INT,
        1000 << 20,
        "Archive files are merged until their total size exceeds this.",
        unit="bytes",
        minimum=1,
    ),
    Option(
        "hoodie.timeline.manifest.retained.versions",
        Kind.INT,
        3,
        "Archive manifests to retain for readers that still use an older one.",
        unit="manifests",
        minimum=1,
    ),
)
"""Options of archiving."""
