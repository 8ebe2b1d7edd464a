"""Options of archiving, resolved once and passed as a value.

Every field is bound to an option of :mod:`hudi_fast.config.options`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_fast.config.option_fields import differing_repr, given_fields, normalise_fields, option_field
from hudi_fast.config.options import WRITE, resolve, text_of
from hudi_fast.errors import ConfigError

__all__ = ["ArchiveOptions"]

_PREFIX_KEY = "hoodie.datasource.write.commitmeta.key.prefix"


@dataclass(frozen=True, slots=True, repr=False)
class ArchiveOptions:
    """When instants are archived, and how the archive is kept. Counts are of commits, files or records; sizes bytes.

    Attributes:
        explicit: newest keys of the options that were given, or that differ from their defaults.
    """

    automatic: bool = option_field("hoodie.archive.automatic")
    max_commits: int = option_field("hoodie.keep.max.commits")
    min_commits: int = option_field("hoodie.keep.min.commits")
    batch_records: int = option_field("hoodie.commits.archival.batch")
    beyond_savepoint: bool = option_field("hoodie.archive.beyond.savepoint")
    block_on_clean: bool = option_field("hoodie.archive.block.on.latest.clean.ectr")
    merge: bool = option_field("hoodie.archive.merge.enable")
    merge_files: int = option_field("hoodie.archive.merge.files.batch.size")
    merge_small_bytes: int = option_field("hoodie.archive.merge.small.file.limit.bytes")
    compaction_files: int = option_field("hoodie.timeline.compaction.batch.size")
    compaction_target_bytes: int = option_field("hoodie.timeline.compaction.target.file.max.bytes")
    manifests_retained: int = option_field("hoodie.timeline.manifest.retained.versions")
    explicit: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> ArchiveOptions:
        """Resolve a dictionary of options; those that a write takes are fine.

        Raises:
            ConfigError: a key or value is wrong, or no commits would be left between the two limits.
            UnsupportedFeatureError: an option asks for something that hudi_fast does not do.

        Warns:
            HudiWarning: an unknown ``hoodie.`` key.
        """
        values = resolve(options, WRITE[0], free_prefix=text_of(_PREFIX_KEY, options.get(_PREFIX_KEY, "_")))
        given: dict[str, Any] = given_fields(cls, values)
        return cls(**given, explicit=frozenset(option.key for option in values))

    def __post_init__(self) -> None:
        object.__setattr__(self, "explicit", self.explicit | normalise_fields(self))
        if self.max_commits <= self.min_commits:
            raise ConfigError(
                f"Increase hoodie.keep.max.commits={self.max_commits} to be greater than "
                f"hoodie.keep.min.commits={self.min_commits}."
            )

    def __repr__(self) -> str:
        return differing_repr(self)
