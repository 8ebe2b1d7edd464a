"""Mistakes in file formats: log blocks, Avro, bloom filters, HFiles."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["FORMATS"]

FORMATS = (
    Mutant(
        name="formats-torn-log-block-is-sound",
        file="hudi_fast/formats/log/blocks.py",
        before="and (len(after) < len(MAGIC) or after == MAGIC)",
        after="and len(after) <= len(MAGIC)",
        harm="A log file with the remains of a crashed write cannot be read.",
        near=("tests/formats/test_formats_log_blocks.py",),
    ),
    Mutant(
        name="formats-search-for-the-next-block-skips-bytes",
        file="hudi_fast/formats/log/blocks.py",
        before="start += _SCAN_STEP - len(MAGIC) + 1",
        after="start += _SCAN_STEP",
        harm="Rows after a large damaged log block are lost.",
        near=("tests/formats/test_formats_log_blocks.py",),
    ),
    Mutant(
        name="formats-widened-float-has-other-digits",
        file="hudi_fast/formats/avro/promotion.py",
        before="return pc.cast(pc.cast(values, pa.string()), pa.float64())",
        after="return pc.cast(values, pa.float64())",
        harm="After a column became double 1.1 is read as 1.10000002384.",
        near=("tests/formats/test_formats_avro_promotion.py", "tests/formats/test_formats_avro_rows_evolution.py"),
    ),
    Mutant(
        name="formats-bloom-filter-ignores-the-begin-of-a-slice",
        file="hudi_fast/formats/bloom_filter.py",
        before="bounds = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]",
        after="bounds = np.frombuffer(offsets, np.int32)[: len(array) + 1]",
        harm="Keys of a file are not in its bloom filter, and upserts insert them a second time.",
        near=("tests/formats/test_formats_bloom_filter.py",),
    ),
    Mutant(
        name="formats-last-key-of-an-hfile-is-not-found",
        file="kernels/hfile.py",
        before="end = begin if _compare(index_data, at, length, data, start, size) == 0 else begin - 1",
        after="end = begin - 1",
        harm="The metadata table misses its last key, and a file or a record with it.",
        near=("tests/kernels/test_kernels_hfile_search.py", "tests/formats/test_formats_hfile_reader.py"),
    ),
)
