"""The options of a bootstrap as one frozen value.

Data flow: ``{"hoodie...": ...}`` -> :meth:`BootstrapOptions.from_options` -> the plan of a bootstrap. The
:class:`~hudi_fast.config.write_options.WriteOptions` from the same dictionary describe the new table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hudi_fast.config.option_fields import (
    READ,
    Kind,
    Option,
    OptionValues,
    normalise_fields,
    option,
    options_of,
)
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.values import dataclass

__all__ = [
    "BOOTSTRAP_OPTIONS",
    "FULL_RECORD",
    "HFILE_INDEX",
    "METADATA_ONLY",
    "BootstrapOptions",
    "bootstrap_source",
    "is_bootstrap",
]

_B = "hoodie.bootstrap."
_SELECTORS = "org.apache.hudi.client.bootstrap.selector."
_MODES = ("METADATA_ONLY", "FULL_RECORD")

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

    base_path: str | None = option(
        f"{_B}base.path",
        Kind.TEXT,
        None,
        "Source folder of Parquet files; required by the operation `bootstrap`.",
    )
    selector: str = option(
        f"{_B}mode.selector",
        Kind.TEXT,
        f"{_SELECTORS}MetadataOnlyBootstrapModeSelector",
        "Partitions whose rows are copied into the table: `MetadataOnlyBootstrapModeSelector` none, "
        "`FullRecordBootstrapModeSelector` all, `BootstrapRegexModeSelector` those selected by a regular expression. "
        "Other partitions stay in the source folder.",
    )
    regex: str = option(
        f"{_B}mode.selector.regex",
        Kind.TEXT,
        ".*",
        "`BootstrapRegexModeSelector`: regular expression that must match the whole partition path of the source "
        "folder.",
    )
    regex_mode: str = option(
        f"{_B}mode.selector.regex.mode",
        Kind.ENUM,
        "METADATA_ONLY",
        "Mode of the matching partitions; the others get the other mode.",
        choices=_MODES,
    )
    translator: str = option(
        f"{_B}partitionpath.translator.class",
        Kind.TEXT,
        "org.apache.hudi.client.bootstrap.translator.IdentityBootstrapPartitionPathTranslator",
        "Partition paths of the table: the paths of the source folder, unchanged "
        "(`IdentityBootstrapPartitionPathTranslator`) or with `%XX` decoded "
        "(`DecodedBootstrapPartitionPathTranslator`).",
    )
    index_class: str = option(
        f"{_B}index.class",
        Kind.TEXT,
        "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex",
        "Class of the bootstrap index.",
    )
    keygen_class: str | None = option(
        f"{_B}keygen.class",
        Kind.TEXT,
        None,
        "Key generator class of the new table, unless `hoodie.datasource.write.keygenerator.class` is given.",
    )
    keygen_type: str | None = option(
        f"{_B}keygen.type",
        Kind.TEXT,
        None,
        "Key generator type of the new table, unless `hoodie.datasource.write.keygenerator.class` is given.",
    )

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


BOOTSTRAP_OPTIONS = (
    *options_of(BootstrapOptions),
    Option(
        f"{_B}index.type",
        Kind.ENUM,
        "HFILE",
        "Format of the bootstrap index, which maps each file group to its source file.",
        choices=("HFILE", "NO_OP"),
        supported=("HFILE",),
    ),
    Option(f"{_B}index.enable", Kind.BOOL, True, "Write a bootstrap index.", supported=(True,)),
    Option(
        f"{_B}full.input.provider",
        Kind.TEXT,
        None,
        "Reader of the source rows; no effect.",
        honoured=False,
    ),
    Option(f"{_B}parallelism", Kind.INT, 1500, "No effect; the plan of the write determines it.", honoured=False),
    Option(
        f"{_B}data.queries.only",
        Kind.BOOL,
        False,
        "No effect; queries of data columns never read skeleton files.",
        families=READ,
        honoured=False,
    ),
)
"""Options of bootstraps."""
