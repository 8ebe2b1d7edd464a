"""The options of archiving as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field

from hudi_fast.config.option_descriptor import Kind
from hudi_fast.config.option_fields import (
    OptionValues,
    normalise_fields,
    option,
    options_of,
)
from hudi_fast.errors import ConfigError

__all__ = ["ARCHIVE_OPTIONS", "ArchiveOptions"]


@dataclass(frozen=True, slots=True, repr=False)
class ArchiveOptions(OptionValues):
    """When instants are archived, and how archive files are merged. Sizes are bytes.

    Attributes:
        explicit: newest keys of the options that were given or differ from their defaults.
    """

    automatic: bool = option("hoodie.archive.automatic", Kind.BOOL, True, "Archive after a write when due.")
    asynchronous: bool = option(
        "hoodie.archive.async",
        Kind.BOOL,
        False,
        "With `hoodie.archive.automatic`: archiving after a write waits until the write has released the table's lock, "
        "and acquires it anew. The call still returns after archiving.",
    )
    max_commits: int = option(
        "hoodie.keep.max.commits",
        Kind.INT,
        30,
        "Archive the oldest commits if the active timeline has more completed commits than this.",
        unit="commits",
        minimum=1,
    )
    min_commits: int = option(
        "hoodie.keep.min.commits",
        Kind.INT,
        20,
        "Completed commits that archiving keeps on the active timeline.",
        unit="commits",
        minimum=1,
    )
    batch_records: int = option(
        "hoodie.commits.archival.batch",
        Kind.INT,
        10,
        "Table version 6: maximum number of records (one per state of an instant) in one archive block.",
        unit="records",
        minimum=1,
    )
    limit_instants: int | None = option(
        "hoodie.archive.limit.instants",
        Kind.INT,
        None,
        "Table version 6: maximum number of instants that one run archives, the oldest first; unlimited by default. "
        "Apache Hudi 1.2 reads it for that version only.",
        unit="instants",
        minimum=0,
    )
    beyond_savepoint: bool = option(
        "hoodie.archive.beyond.savepoint",
        Kind.BOOL,
        False,
        "Also archive instants newer than the first savepoint; only savepointed commits are kept.",
    )
    block_on_clean: bool = option(
        "hoodie.archive.block.on.latest.clean.ectr",
        Kind.BOOL,
        False,
        "Table version 6: archive only commits before the earliest commit retained by the last clean.",
    )
    merge: bool = option(
        "hoodie.archive.merge.enable",
        Kind.BOOL,
        False,
        "Table version 6: merge small archive files.",
    )
    merge_files: int = option(
        "hoodie.archive.merge.files.batch.size",
        Kind.INT,
        10,
        "Table version 6: number of small archive files to merge into one.",
        unit="files",
        minimum=2,
    )
    merge_small_bytes: int = option(
        "hoodie.archive.merge.small.file.limit.bytes",
        Kind.INT,
        20 << 20,
        "Table version 6: archive files below this size are small.",
        unit="bytes",
        minimum=1,
    )
    compaction_files: int = option(
        "hoodie.timeline.compaction.batch.size",
        Kind.INT,
        10,
        "Number of archive files of one level to merge into one file of the next level.",
        unit="files",
        minimum=2,
    )
    compaction_target_bytes: int = option(
        "hoodie.timeline.compaction.target.file.max.bytes",
        Kind.INT,
        1000 << 20,
        "Archive files are merged until their total size exceeds this.",
        unit="bytes",
        minimum=1,
    )
    manifests_retained: int = option(
        "hoodie.timeline.manifest.retained.versions",
        Kind.INT,
        3,
        "Archive manifests to retain for readers that still use an older one.",
        unit="manifests",
        minimum=1,
    )
    explicit: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", self.explicit | normalise_fields(self))
        if self.max_commits <= self.min_commits:
            raise ConfigError(
                f"Increase hoodie.keep.max.commits={self.max_commits} to be greater than "
                f"hoodie.keep.min.commits={self.min_commits}."
            )


ARCHIVE_OPTIONS = options_of(ArchiveOptions)
"""Options of archiving."""
