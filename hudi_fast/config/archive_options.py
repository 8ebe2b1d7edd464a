"""The options of archiving as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field

from hudi_fast.config.option_fields import normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues
from hudi_fast.errors import ConfigError

__all__ = ["ArchiveOptions"]


@dataclass(frozen=True, slots=True, repr=False)
class ArchiveOptions(OptionValues):
    """When instants are archived, and how archive files are merged. Sizes are bytes.

    Attributes:
        explicit: newest keys of the options that were given or differ from their defaults.
    """

    automatic: bool = option_field("hoodie.archive.automatic")
    asynchronous: bool = option_field("hoodie.archive.async")
    max_commits: int = option_field("hoodie.keep.max.commits")
    min_commits: int = option_field("hoodie.keep.min.commits")
    batch_records: int = option_field("hoodie.commits.archival.batch")
    limit_instants: int | None = option_field("hoodie.archive.limit.instants")
    beyond_savepoint: bool = option_field("hoodie.archive.beyond.savepoint")
    block_on_clean: bool = option_field("hoodie.archive.block.on.latest.clean.ectr")
    merge: bool = option_field("hoodie.archive.merge.enable")
    merge_files: int = option_field("hoodie.archive.merge.files.batch.size")
    merge_small_bytes: int = option_field("hoodie.archive.merge.small.file.limit.bytes")
    compaction_files: int = option_field("hoodie.timeline.compaction.batch.size")
    compaction_target_bytes: int = option_field("hoodie.timeline.compaction.target.file.max.bytes")
    manifests_retained: int = option_field("hoodie.timeline.manifest.retained.versions")
    explicit: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", self.explicit | normalise_fields(self))
        if self.max_commits <= self.min_commits:
            raise ConfigError(
                f"Increase hoodie.keep.max.commits={self.max_commits} to be greater than "
                f"hoodie.keep.min.commits={self.min_commits}."
            )
