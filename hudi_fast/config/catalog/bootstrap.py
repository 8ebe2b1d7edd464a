"""The options of a bootstrap: a folder of Parquet files becomes a table (``HoodieBootstrapConfig``, Hudi 1.2.0)."""

from __future__ import annotations

from hudi_fast.config.option_descriptor import READ, Kind, Option

__all__ = ["BOOTSTRAP_OPTIONS"]

_B = "hoodie.bootstrap."
_SELECTORS = "org.apache.hudi.client.bootstrap.selector."
_TRANSLATORS = "org.apache.hudi.client.bootstrap.translator."
_MODES = ("METADATA_ONLY", "FULL_RECORD")

BOOTSTRAP_OPTIONS = (
    Option(
        f"{_B}base.path",
        Kind.TEXT,
        None,
        "Folder of Parquet files that a bootstrap makes a table of. A write with the operation `bootstrap` needs it.",
    ),
    Option(
        f"{_B}mode.selector",
        Kind.TEXT,
        f"{_SELECTORS}MetadataOnlyBootstrapModeSelector",
        "Which partitions are left where they are, and which are copied: `MetadataOnlyBootstrapModeSelector` none, "
        "`FullRecordBootstrapModeSelector` all, `BootstrapRegexModeSelector` those that an expression chooses.",
    ),
    Option(
        f"{_B}mode.selector.regex",
        Kind.TEXT,
        ".*",
        "Expression for partition paths of the folder; a path matches as a whole.",
    ),
    Option(
        f"{_B}mode.selector.regex.mode",
        Kind.ENUM,
        "METADATA_ONLY",
        "What becomes of partitions that match; the other ones get the other mode.",
        choices=_MODES,
    ),
    Option(
        f"{_B}partitionpath.translator.class",
        Kind.TEXT,
        f"{_TRANSLATORS}IdentityBootstrapPartitionPathTranslator",
        "Partition paths of the table: those of the folder as they are, or "
        "(`DecodedBootstrapPartitionPathTranslator`) with `%XX` undone.",
    ),
    Option(
        f"{_B}index.type",
        Kind.ENUM,
        "HFILE",
        "How it is kept which file holds the data of which file group.",
        choices=("HFILE", "NO_OP"),
        supported=("HFILE",),
    ),
    Option(
        f"{_B}index.class",
        Kind.TEXT,
        "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex",
        "The same as a class.",
    ),
    Option(f"{_B}index.enable", Kind.BOOL, True, "Whether that is kept at all.", supported=(True,)),
    Option(
        f"{_B}keygen.class",
        Kind.TEXT,
        None,
        "Key generator of the new table, where `hoodie.datasource.write.keygenerator.class` does not name one.",
    ),
    Option(f"{_B}keygen.type", Kind.TEXT, None, "The same, by its type."),
    Option(
        f"{_B}full.input.provider",
        Kind.TEXT,
        None,
        "How the rows of a folder are read; follows from it.",
        honoured=False,
    ),
    Option(f"{_B}parallelism", Kind.INT, 1500, "Follows from the plan of the write.", honoured=False),
    Option(
        f"{_B}data.queries.only",
        Kind.BOOL,
        False,
        "Queries of data columns alone leave skeletons out by themselves.",
        families=READ,
        honoured=False,
    ),
)
