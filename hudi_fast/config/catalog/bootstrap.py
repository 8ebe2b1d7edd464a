"""Options of bootstrap, which turns a folder of Parquet files into a table (``HoodieBootstrapConfig``, Hudi 1.2.0)."""

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
        "Source folder of Parquet files; required by the operation `bootstrap`.",
    ),
    Option(
        f"{_B}mode.selector",
        Kind.TEXT,
        f"{_SELECTORS}MetadataOnlyBootstrapModeSelector",
        "Partitions whose rows are copied into the table: `MetadataOnlyBootstrapModeSelector` none, "
        "`FullRecordBootstrapModeSelector` all, `BootstrapRegexModeSelector` those selected by a regular expression. "
        "Other partitions stay in the source folder.",
    ),
    Option(
        f"{_B}mode.selector.regex",
        Kind.TEXT,
        ".*",
        "`BootstrapRegexModeSelector`: regular expression that must match the whole partition path of the source "
        "folder.",
    ),
    Option(
        f"{_B}mode.selector.regex.mode",
        Kind.ENUM,
        "METADATA_ONLY",
        "Mode of the matching partitions; the others get the other mode.",
        choices=_MODES,
    ),
    Option(
        f"{_B}partitionpath.translator.class",
        Kind.TEXT,
        f"{_TRANSLATORS}IdentityBootstrapPartitionPathTranslator",
        "Partition paths of the table: the paths of the source folder, unchanged "
        "(`IdentityBootstrapPartitionPathTranslator`) or with `%XX` decoded "
        "(`DecodedBootstrapPartitionPathTranslator`).",
    ),
    Option(
        f"{_B}index.type",
        Kind.ENUM,
        "HFILE",
        "Format of the bootstrap index, which maps each file group to its source file.",
        choices=("HFILE", "NO_OP"),
        supported=("HFILE",),
    ),
    Option(
        f"{_B}index.class",
        Kind.TEXT,
        "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex",
        "Class of the bootstrap index.",
    ),
    Option(f"{_B}index.enable", Kind.BOOL, True, "Write a bootstrap index.", supported=(True,)),
    Option(
        f"{_B}keygen.class",
        Kind.TEXT,
        None,
        "Key generator class of the new table, unless `hoodie.datasource.write.keygenerator.class` is given.",
    ),
    Option(
        f"{_B}keygen.type",
        Kind.TEXT,
        None,
        "Key generator type of the new table, unless `hoodie.datasource.write.keygenerator.class` is given.",
    ),
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
