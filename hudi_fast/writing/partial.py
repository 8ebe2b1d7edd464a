"""Partial updates: rows with the key, the ordering fields and only the columns to change.

In logs of table version 8 and later they become blocks whose schema lists these columns (header IS_PARTIAL); merging
the slice keeps the stored values of all other columns. Elsewhere they are completed from the stored rows
(:mod:`hudi_fast.writing.whole_rows`). Rows whose key is not stored are refused before a file is written.

Source: table format, section 6.6; ``HoodieAppendHandle``, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, InvalidDataError, SchemaMismatchError
from hudi_fast.formats.avro.schema import arrow_to_avro, record_name_of, with_meta, without_meta
from hudi_fast.merging.rules import MergeRules
from hudi_fast.writing.write_plan import FileGroupWork, Incoming, PartialColumns, WritePlan

__all__ = ["partial_columns", "refuse_unknown", "unknown_keys"]

_OPTION = "hudi_fast.partial.update"
_FIRST_VERSION = 8
_NO_ROWS = np.zeros(0, dtype=np.int64)


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
        ConfigError: an operation other than upsert, or a table without rows.
        SchemaMismatchError: columns that the table lacks, or no column to change.
    """
    if operation != "upsert" or known is None:
        raise ConfigError(
            f"{_OPTION}=true updates stored rows: it requires upsert, into a table that has rows. The "
            f"operation is {operation}" + (", and the table has no commit yet." if known is None else ".")
        )
    given = without_meta(incoming).names
    unknown = [name for name in given if name not in known.names]
    if unknown:
        raise SchemaMismatchError(
            f"A partial update of table {config.name} has the columns {unknown}, which the table does not have; add "
            "them with an upsert of whole rows first."
        )
    schema = pa.schema([field for field in known if field.name in given])
    file_schema = with_meta(schema, options.table.operation_field)
    moves = options.index.is_global and options.index.updates_partition
    return PartialColumns(
        schema,
        file_schema,
        arrow_to_avro(file_schema, *record_name_of(config.name), meta_fields=True),
        completes=not config.is_mor or config.version < _FIRST_VERSION or moves or rules.blends,
    )


def refuse_unknown(plan: WritePlan, incoming: Incoming, works: Iterable[FileGroupWork]) -> None:
    """Fail if a partial update has rows whose key is not stored.

    Raises:
        InvalidDataError: there are such rows; names their number and an example.
    """
    if plan.partial is None:
        return
    unknown = []
    for work in works:
        known = np.concatenate([_NO_ROWS, *(origin.incoming_rows for origin in work.origins)])
        unknown.append(work.inserts[~np.isin(work.inserts, known)])
    rows = np.concatenate([_NO_ROWS, *unknown])
    if len(rows):
        raise unknown_keys(plan, incoming, rows)


def unknown_keys(plan: WritePlan, incoming: Incoming, rows: npt.NDArray[np.int64]) -> InvalidDataError:
    """The error of partial rows whose key is not stored.

    Args:
        plan: the write.
        incoming: rows of the write.
        rows: int64[n], positions of these rows, at least one.
    """
    key, partition = (column[int(rows[0])].as_py() for column in (incoming.key_array(), incoming.partitions))
    return InvalidDataError(
        f"{len(rows)} rows of the partial update have a key that {plan.storage.uri} does not hold, for example {key!r} "
        f"in partition {partition!r}. Only stored rows can be updated in part; insert whole rows for the others, "
        f"without {_OPTION}."
    )
