"""Options of the engines: threads, memory, and the physical plan on Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hudi_fast.config.option_fields import BOTH, Kind, OptionValues, option, options_of
from hudi_fast.values import dataclass

__all__ = ["ENGINE_OPTIONS", "EngineOptions"]


@dataclass(frozen=True, slots=True, repr=False)
class EngineOptions(OptionValues):
    """How a call is executed. Sizes are bytes."""

    plan: str = option(
        "hudi_fast.plan",
        Kind.ENUM,
        "auto",
        "Physical plan of a write on Spark; auto = chosen by size, index and placement.",
        choices=("auto", "driver", "broadcast", "fused", "routed"),
    )
    scan: str = option(
        "hudi_fast.scan",
        Kind.ENUM,
        "auto",
        "Who reads Parquet files whose rows are written on Spark; auto = Python where it reads the same values as "
        "Spark, spark = always Spark, files = always Python, or an error that says why it cannot.",
        choices=("auto", "spark", "files"),
    )
    threads: int = option(
        "hudi_fast.threads",
        Kind.INT,
        0,
        "Threads of the local engine; 0 = one per core, more for small files of an object store.",
        unit="threads",
        minimum=0,
        families=BOTH,
    )
    syncs_files: bool = option(
        "hudi_fast.fsync",
        Kind.BOOL,
        True,
        "Files of local tables are on the disk before their write is acknowledged. Without it, a loss of power may "
        "take the writes of the last half minute.",
    )
    driver_max_bytes: int = option(
        "hudi_fast.driver.max.bytes",
        Kind.INT,
        64 * 1024 * 1024,
        "Largest input that the driver collects. On a cluster it writes the rows itself only if it reads no more than "
        "this from files of the table for them.",
        unit="bytes",
        minimum=0,
    )
    rows_memory: int = option(
        "hoodie.memory.merge.max.size",
        Kind.INT,
        1 << 30,
        "Writes without Spark: memory for the rows of a stream. A stream with more than half of it in Arrow bytes goes "
        "through temporary files. No effect on tables in memory and on Spark.",
        unit="bytes",
        minimum=1,
        families=BOTH,
    )
    spill_folder: str | None = option(
        "hoodie.memory.spillable.map.path",
        Kind.TEXT,
        None,
        "Writes without Spark: local folder for the temporary files of a stream that is larger than memory; it is made "
        "if it does not exist. Default: `TMPDIR`, or the system's folder for temporary files.",
        families=BOTH,
    )
    merger: Callable[..., Any] | None = option(
        "hudi_fast.merger",
        Kind.FUNCTION,
        None,
        "Merge function for merge mode CUSTOM: `merge(older, newer)` takes two Arrow tables whose rows have the same "
        "keys row by row, and returns the merged rows; `_hoodie_is_deleted` marks deletes.",
        families=BOTH,
    )


ENGINE_OPTIONS = options_of(EngineOptions)
"""Options of the engines."""
