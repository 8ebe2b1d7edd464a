"""Options of archiving: when instants leave the active timeline, and how the archive is kept.

Sources: ``HoodieArchivalConfig``, ``HoodieWriteConfig`` (1.2.0); merging of small archive files: 0.15.0.
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import Kind, Option

__all__ = ["ARCHIVE_OPTIONS"]

ARCHIVE_OPTIONS = (
    Option("hoodie.archive.automatic", Kind.BOOL, True, "Archive after a write, if that is due."),
    Option(
        "hoodie.keep.max.commits",
        Kind.INT,
        30,
        "Complete commits on the active timeline above which the oldest are archived.",
        unit="commits",
        minimum=1,
    ),
    Option(
        "hoodie.keep.min.commits",
        Kind.INT,
        20,
        "Complete commits that archiving leaves on the active timeline.",
        unit="commits",
        minimum=1,
    ),
    Option(
        "hoodie.commits.archival.batch",
        Kind.INT,
        10,
        "Table version 6: most records, one per state of an instant, in one block of the archive.",
        unit="records",
        minimum=1,
    ),
    Option(
        "hoodie.archive.beyond.savepoint",
        Kind.BOOL,
        False,
        "Archive instants that are newer than the first savepoint too; only what is saved stays.",
    ),
    Option(
        "hoodie.archive.block.on.latest.clean.ectr",
        Kind.BOOL,
        False,
        "Table version 6: archive nothing from the earliest commit that the last clean retained on.",
    ),
    Option(
        "hoodie.archive.merge.enable",
        Kind.BOOL,
        False,
        "Table version 6: merge small files of the archive.",
    ),
    Option(
        "hoodie.archive.merge.files.batch.size",
        Kind.INT,
        10,
        "Table version 6: how many small files of the archive become one.",
        unit="files",
        minimum=2,
    ),
    Option(
        "hoodie.archive.merge.small.file.limit.bytes",
        Kind.INT,
        20 << 20,
        "Table version 6: files of the archive below this are small.",
        unit="bytes",
        minimum=1,
    ),
    Option(
        "hoodie.timeline.compaction.batch.size",
        Kind.INT,
        10,
        "Files of one level of the archive that are merged into one of the next level.",
        unit="files",
        minimum=2,
    ),
    Option(
        "hoodie.timeline.compaction.target.file.max.bytes",
        Kind.INT,
        1000 << 20,
        "Files of the archive are merged until the sum of their sizes passes this.",
        unit="bytes",
        minimum=1,
    ),
    Option(
        "hoodie.timeline.manifest.retained.versions",
        Kind.INT,
        3,
        "Manifests of the archive that stay for readers that hold on to one.",
        unit="manifests",
        minimum=1,
    ),
)
