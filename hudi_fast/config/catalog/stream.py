"""Options of streams: the sink's among the write options, the source's among the read options.

Sources: ``DataSourceWriteOptions``, ``DataSourceReadOptions``, ``HoodieStreamingSink`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import READ, Kind, Option

__all__ = ["STREAM_OPTIONS"]

_SINK = "hoodie.datasource.write.streaming."

STREAM_OPTIONS = (
    Option(
        f"{_SINK}checkpoint.identifier",
        Kind.TEXT,
        "default_single_writer",
        "Streams: under which name the newest batch of a stream stands in the commits of the table. Streams that write "
        "to one table need names of their own.",
    ),
    Option(
        f"{_SINK}retry.count",
        Kind.INT,
        3,
        "Streams: how often a batch that fails is tried in all.",
        unit="tries",
        minimum=1,
    ),
    Option(
        f"{_SINK}retry.interval.ms",
        Kind.INT,
        2000,
        "Streams: time before the second try of a batch; it doubles with every further one.",
        unit="ms",
        minimum=0,
    ),
    Option(
        f"{_SINK}ignore.failed.batch",
        Kind.BOOL,
        False,
        "Streams: a batch that fails for good is left out with a warning, and the stream goes on.",
    ),
    Option(
        f"{_SINK}disable.compaction",
        Kind.BOOL,
        False,
        "Streams: no compaction is planned or carried out beside the stream.",
    ),
    Option(
        "hudi_fast.spool.max.bytes",
        Kind.INT,
        4 << 30,
        'Writes by `format("hudi_fast")`: rows in memory that one write may bring. The driver writes them all.',
        unit="bytes",
        minimum=1,
    ),
    Option(
        "hoodie.datasource.streaming.startOffset",
        Kind.TEXT,
        "earliest",
        "Streams: where a new stream begins: `earliest`, `latest`, or after the commits up to a time.",
        families=READ,
    ),
    Option(
        "hudi_fast.source.pushdown",
        Kind.BOOL,
        False,
        'Reads by `format("hudi_fast")`: let Spark hand filters down, which leave out files and rows. PySpark 4.1 to '
        "4.3 keep the filters of a DataFrame's first query for its later ones: for DataFrames that are used once.",
        families=READ,
    ),
    Option(
        "hudi_fast.stream.max.commits",
        Kind.INT,
        None,
        "Streams: commits that a batch may bring; absent = all that there are.",
        unit="commits",
        minimum=1,
        families=READ,
    ),
    Option(
        "hudi_fast.stream.max.bytes",
        Kind.INT,
        None,
        "Streams: bytes that the commits of a batch may have written; one commit is taken in any case.",
        unit="bytes",
        minimum=1,
        families=READ,
    ),
)
