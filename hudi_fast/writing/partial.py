"""Partial updates: rows with the key, the ordering fields and only the columns to change.

They become log blocks whose schema lists these columns (header IS_PARTIAL); merging the slice keeps the stored values
of all other columns. Rows whose key is not stored are refused before a file is written.

Source: table format, section 6.6; ``HoodieAppendHandle``, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import arrow_to_avro, record_name_of, with_meta, without_meta
from hudi_fast.merging.rules import MergeRules
from hudi_fast.writing.plan import FileGroupWork, Incoming, PartialColumns, WritePlan

__all__ = ["partial_columns", "refuse_unknown"]

_OPTION = "hudi_fast.partial.update"
_FIRST_VERSION = 8


def partial_columns(
    config: TableConfig,
    options: WriteOptions,
    operation: str,
    rules: MergeRules,
    known: pa.Schema | None,
    incoming: pa.Schema,
) -> PartialColumns:
    """The columns of a partial update.

    Args:
        config: the table's configuration.
        options: of the write.
        operation: of the write.
        rules: how rows merge.
        known: the table's data columns; None for a table without rows.
        incoming: columns of the rows.

    Raises:
        ConfigError: another operation than upsert, or a table without rows.
        SchemaMismatchError: columns that the table lacks, or no column to change.
        UnsupportedFeatureError: a kind of table or index that does not support partial blocks.
    """
    if operation != "upsert" or known is None:
        raise ConfigError(
            f"{_OPTION}=true updates stored rows: it requires upsert, into a table that has rows. The "
            f"operation is {operation}" + (", and the table has no commit yet." if known is None else ".")
        )
    problems = {
        "a COPY_ON_WRITE table": not config.is_mor,
        f"table version {config.version}, whose readers do not support partial blocks": config.version < _FIRST_VERSION,
        f"the global index {options.index_type}, which may move rows": options.is_global_index
        and options.update_partition_path,
        "a table with its own way of merging rows (hoodie.table.partial.update.mode, or a merger)": rules.blends,
    }
    found = [text for text, present in problems.items() if present]
    if found:
        raise UnsupportedFeatureError(f"{_OPTION}=true is not supported for {'; '.join(found)}.")
    given = without_meta(incoming).names
    unknown = [name for name in given if name not in known.names]
    if unknown:
        raise SchemaMismatchError(
            f"A partial update of table {config.name} has the columns {unknown}, which the table does not have; add "
            "them with an upsert of whole rows first."
        )
    schema = pa.schema([field for field in known if field.name in given])
    file_schema = with_meta(schema)
    return PartialColumns(
        schema, file_schema, arrow_to_avro(file_schema, *record_name_of(config.name), meta_fields=True)
    )


def refuse_unknown(plan: WritePlan, incoming: Incoming, works: Iterable[FileGroupWork]) -> None:
    """Fail if a partial update has rows whose key is not stored.

    Raises:
        InvalidDataError: with their number and an example.
    """
    if plan.partial is None:
        return
    found = [work for work in works if len(work.inserts)]
    if found:
        key = incoming.key_array()[int(found[0].inserts[0])].as_py()
        raise InvalidDataError(
            f"{sum(len(work.inserts) for work in found)} rows of the partial update have a key that {plan.storage.uri} "
            f"does not hold, for example {key!r} in partition {found[0].partition!r}. Only stored rows can be "
            "updated in part; insert whole rows for the others, without "
            f"{_OPTION}."
        )
