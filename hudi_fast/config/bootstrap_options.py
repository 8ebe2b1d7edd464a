"""The options of a bootstrap as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`BootstrapOptions.from_options` -> the plan of a bootstrap. The
:class:`~hudi_fast.config.write_options.WriteOptions` from the same dictionary describe the new table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_fast.config.option_fields import normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues
from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["FULL_RECORD", "HFILE_INDEX", "METADATA_ONLY", "BootstrapOptions", "bootstrap_source", "is_bootstrap"]

METADATA_ONLY, FULL_RECORD = "METADATA_ONLY", "FULL_RECORD"
"""Bootstrap modes: write skeleton files that refer to source files; rewrite whole rows."""

_UNIFORM = {"MetadataOnlyBootstrapModeSelector": METADATA_ONLY, "FullRecordBootstrapModeSelector": FULL_RECORD}
_BY_REGEX = "BootstrapRegexModeSelector"
_TRANSLATORS = ("IdentityBootstrapPartitionPathTranslator", "DecodedBootstrapPartitionPathTranslator")
HFILE_INDEX = "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex"
"""Apache Hudi's class of the index that locates bootstrapped files."""


@dataclass(frozen=True, slots=True, repr=False)
class BootstrapOptions(OptionValues):
    """Which partitions of the source folder are copied, and their partition paths in the table.

    Raises:
        ConfigError: an invalid regular expression.
        UnsupportedFeatureError: a user-defined selector, translator or index class.
    """

    base_path: str | None = option_field("hoodie.bootstrap.base.path")
    selector: str = option_field("hoodie.bootstrap.mode.selector")
    regex: str = option_field("hoodie.bootstrap.mode.selector.regex")
    regex_mode: str = option_field("hoodie.bootstrap.mode.selector.regex.mode")
    translator: str = option_field("hoodie.bootstrap.partitionpath.translator.class")
    index_class: str = option_field("hoodie.bootstrap.index.class")
    keygen_class: str | None = option_field("hoodie.bootstrap.keygen.class")
    keygen_type: str | None = option_field("hoodie.bootstrap.keygen.type")

    def __post_init__(self) -> None:
        normalise_fields(self)
        for key, value, known in (
            ("mode.selector", self.selector, (*_UNIFORM, _BY_REGEX)),
            ("partitionpath.translator.class", self.translator, _TRANSLATORS),
            ("index.class", self.index_class, (_simple(HFILE_INDEX),)),
        ):
            if _simple(value) not in known:
                raise UnsupportedFeatureError(
                    f"hoodie.bootstrap.{key}={value!r} is not supported; use one of {', '.join(known)}."
                )
        try:
            re.compile(self.regex)
        except re.error as error:
            raise ConfigError(
                f"hoodie.bootstrap.mode.selector.regex={self.regex!r} is not a valid regular expression: {error}."
            ) from error

    @property
    def decodes_paths(self) -> bool:
        """Whether ``%XX`` escapes in the folder's partition paths are decoded."""
        return _simple(self.translator).startswith("Decoded")

    def mode_of(self, folder: str) -> str:
        """``METADATA_ONLY`` or ``FULL_RECORD``."""
        uniform = _UNIFORM.get(_simple(self.selector))
        if uniform is not None:
            return uniform
        other = METADATA_ONLY if self.regex_mode == FULL_RECORD else FULL_RECORD
        return self.regex_mode if re.fullmatch(self.regex, folder) else other


def is_bootstrap(options: Mapping[str, Any] | None) -> bool:
    """Whether the write options request a bootstrap."""
    return str((options or {}).get("hoodie.datasource.write.operation", "")).lower() == "bootstrap"


def bootstrap_source(options: Mapping[str, Any] | None) -> str:
    """The source folder of a bootstrap.

    Raises:
        ConfigError: the options name no folder.
    """
    path = (options or {}).get("hoodie.bootstrap.base.path")
    if not path:
        raise ConfigError("The operation bootstrap needs hoodie.bootstrap.base.path: the folder of Parquet files.")
    return str(path)


def _simple(name: str) -> str:
    """A class name without its package."""
    return name.rpartition(".")[2]
