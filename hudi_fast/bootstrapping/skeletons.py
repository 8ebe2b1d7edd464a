"""Skeleton files: base files with only the meta columns, built from the key columns of one source file each.

Only key columns are read, one batch at a time. Row n of a skeleton belongs to row n of its source file, so each source
file has one skeleton, of any size. A repeated attempt writes the same rows under another name.

Source: ``HoodieBootstrapHandle``, ``ParquetBootstrapMetadataHandler`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from hudi_fast.errors import InvalidDataError
from hudi_fast.formats.avro.schema import arrow_to_avro
from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.parquet.stitched_base import folder_scalar
from hudi_fast.keys.key_generator import record_keys, refuse_stand_ins
from hudi_fast.schema.conform import ConformPlan, plan_conform
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.base_files import folder_values, open_source
from hudi_fast.view.bootstrap_index import SourceFile
from hudi_fast.writing.file_columns import META_COLUMNS, new_meta_columns, writer_schema
from hudi_fast.writing.key_footer import KeyFooter
from hudi_fast.writing.output_file import OutputFile
from hudi_fast.writing.partition_marker import ensure_partition_marker
from hudi_fast.writing.plan import PART_ROWS, FileGroupWork, FilePlan, TaskToken

__all__ = ["make_skeleton", "skeleton_plan"]

_NO_ROWS = np.empty(0, np.int64)
_META = pa.schema([pa.field(name, pa.string()) for name in META_COLUMNS])


def skeleton_plan(plan: FilePlan) -> FilePlan:
    """The plan of a write with files of meta columns only; ranges of data columns come from the source files."""
    avro = arrow_to_avro(_META, "HoodieRecordKey", "", meta_fields=True)
    table = replace(plan.table, file_schema=_META, avro_schema=avro)
    return FilePlan(table=table, files=replace(plan.files, stats_columns=()), instant=plan.instant)


def make_skeleton(plan: FilePlan, source: SourceFile, token: TaskToken) -> list[WriteStat]:
    """Write the skeleton file of one source file.

    Args:
        plan: from :func:`skeleton_plan`; it has its instant.
        source: the file.
        token: of the task.

    Raises:
        InvalidDataError: a row has no key.
        CorruptTableError: the file cannot be read.
    """
    ensure_partition_marker(plan.storage, source.partition, plan.instant, plan.config.partition_metafile_in_base_format)
    unit = FileGroupWork(source.partition, source.file_id, None, _NO_ROWS, _NO_ROWS, None, _NO_ROWS, token)
    with (
        open_source(plan.storage, source) as reader,
        OutputFile(plan, unit, source.file_id, "CREATE", KeyFooter.for_new_file(plan)) as output,
    ):
        schema = writer_schema(plan)
        try:
            for keys in _keys(plan, source, reader, token.task):
                meta = new_meta_columns(plan, keys, source.partition, output.name, token.task, output.rows)
                output.write(pa.Table.from_arrays(meta, schema=schema))
                output.footer.add(keys)
        except InvalidDataError as error:
            error.add_note(f"The rows are those of {source.uri}.")
            raise
        size = output.close()
    return [
        WriteStat(
            file_id=source.file_id,
            path=output.path,
            prev_commit="null",
            partition_path=source.partition,
            num_writes=output.rows,
            num_inserts=output.rows,
            total_write_bytes=size,
            file_size=size,
        )
    ]


def _keys(plan: FilePlan, source: SourceFile, reader: BaseFileReader, task: int) -> Iterator[pa.Array]:
    """The record keys of a file, some rows at a time."""
    roots = list(dict.fromkeys(name.split(".")[0] for name in plan.key_config.record_key_fields))
    stored = [name for name in roots if reader.has(name)]
    wanted = pa.schema([plan.schema.field(name) for name in roots])
    if not roots:  # keys are made up: only the number of rows matters
        for start in range(0, reader.num_rows, PART_ROWS):
            empty = pa.RecordBatch.from_struct_array(pa.nulls(min(PART_ROWS, reader.num_rows - start), pa.struct([])))
            yield record_keys(plan.key_config, empty, f"{plan.instant}_{task}", start)
        return
    values = folder_values(source.source_partition, [name for name in roots if name not in stored])
    conforming: ConformPlan | None = None
    first = 0
    for batch in reader.batches(stored, PART_ROWS):
        for name, text in values.items():
            batch = batch.append_column(name, pa.repeat(folder_scalar(text), batch.num_rows))
        conforming = conforming or plan_conform(batch.schema, wanted)
        rows = conforming.apply(batch)
        refuse_stand_ins(plan.key_config, rows, first)
        yield record_keys(plan.key_config, rows, None, first)
        first += batch.num_rows
