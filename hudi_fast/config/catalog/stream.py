"""Options of streaming sinks (write options) and sources (read options).

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
        "Streams: name under which commits record the newest batch of the stream. Each stream that writes to a table "
        "needs its own name.",
    ),
    Option(
        f"{_SINK}retry.count",
        Kind.INT,
        3,
        "Streams: maximum number of attempts for a failing batch.",
        unit="attempts",
        minimum=1,
    ),
    Option(
        f"{_SINK}retry.interval.ms",
        Kind.INT,
        2000,
        "Streams: wait before the second attempt of a batch; it doubles with each further attempt.",
        unit="ms",
        minimum=0,
    ),
    Option(
        f"{_SINK}ignore.failed.batch",
        Kind.BOOL,
        False,
        "Streams: skip a batch with a warning if all attempts fail, and continue the stream.",
    ),
    Option(
        f"{_SINK}disable.compaction",
        Kind.BOOL,
        False,
        "Streams: neither plan nor execute compactions in the background.",
    ),
    Option(
        "hudi_fast.spool.max.bytes",
        Kind.INT,
        4 << 30,
        'Writes by `format("hudi_fast")`: maximum in-memory size of the rows of one write. The driver writes all rows.',
        unit="bytes",
        minimum=1,
    ),
    Option(
        "hoodie.datasource.streaming.startOffset",
        Kind.TEXT,
        "earliest",
        "Streams: start of a new stream: `earliest`, `latest`, or a time; commits up to that time are skipped.",
        families=READ,
    ),
    Option(
        "hudi_fast.source.pushdown",
        Kind.BOOL,
        False,
        'Reads by `format("hudi_fast")`: let Spark push filters down to skip files and rows. Use such a DataFrame for '
        "one query only: PySpark 4.1 to 4.3 apply the filters of its first query to later ones.",
        families=READ,
    ),
    Option(
        "hudi_fast.stream.max.commits",
        Kind.INT,
        None,
        "Streams: maximum commits per batch; unlimited by default.",
        unit="commits",
        minimum=1,
        families=READ,
    ),
    Option(
        "hudi_fast.stream.max.bytes",
        Kind.INT,
        None,
        "Streams: maximum bytes written by the commits of a batch; a batch has at least one commit.",
        unit="bytes",
        minimum=1,
        families=READ,
    ),
)
"""Options of streaming writes and reads."""
