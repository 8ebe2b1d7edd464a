"""Write the results of ``run.py --json`` to the tables of docs/benchmarks.md.

COPY_ON_WRITE results replace the lines between the ``speed`` markers, MERGE_ON_READ those between ``speed-mor``,
clustering those between ``speed-services``, incremental queries those between ``speed-incremental``. Results of
``others.py --json`` replace those between ``others`` and ``others-spark``. A table without new results is left
unchanged.

Usage: ``python docs_table.py RESULT.json [RESULT.json ...]``; all results must be of one machine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
TITLES = {
    "bulk_insert": "bulk_insert of 2 M rows",
    "up1": "upsert of 1 % (20 000 rows)",
    "up10": "upsert of 10 %, and 2.5 % new",
    "up100": "upsert of 100 %",
    "small": "upsert of 100 rows into 1 000",
    "tagging": "2 M keys looked up by bloom index, none there",
    "record": "upsert of 10 %, and 2.5 % new, by record index",
    "record_tag": "2 M keys looked up in the record index, none there",
    "plain_up10": "upsert of 10 %, and 2.5 % new, no metadata table",
    "plain_small": "upsert of 100 rows into 1 000, no metadata table",
    "mor_record": "upsert of 10 %, and 2.5 % new, by record index",
    "mor_up1": "upsert of 1 %",
    "mor_up10": "upsert of 10 %, and 2.5 % new",
    "mor_up100": "upsert of 100 %",
    "mor_read1": "snapshot, 1 % in the log",
    "mor_read10": "snapshot, 10 % in the log",
    "mor_read100": "snapshot, 100 % in the log",
    "mor_compact": "compaction, 100 % in the log",
    "incr1": "COPY_ON_WRITE",
    "mor_incr1": "MERGE_ON_READ",
    "cluster_sort": "clustering of 2 M rows, sorted by two columns",
    "cluster_copy": "clustering of 2 M rows, not sorted: row groups are copied",
}
OTHERS = {
    "load": "load",
    "up1": "upsert of 1 %",
    "up10": "upsert of 10 %, and 2.5 % new",
    "up100": "upsert of 100 %",
    "read": "snapshot, all columns",
    "mor_up1": "upsert of 1 %, merge on read",
    "mor_up10": "upsert of 10 %, and 2.5 % new, merge on read",
    "mor_up100": "upsert of 100 %, merge on read",
}
"""Titles of the cases of ``others.py``."""

CODECS = {"zstd": "zstd", "default": "each side's own"}
NAMES = {
    "hudi": "Apache Hudi",
    "hudi_rs": "hudi-rs",
    "local": "hudi_fast, one process",
    "spark": "hudi_fast, Spark",
    "spark_rows": "hudi_fast, Spark computes the rows",
    "hudi_rs_simple": "hudi-rs, no record index",
    "delta_rs": "delta-rs",
    "delta": "Delta Lake, Spark",
    "iceberg": "Iceberg, Spark",
}
OURS = ("local", "spark", "spark_rows")
ALONE = ("local", "delta_rs", "hudi_rs", "hudi_rs_simple")
ON_SPARK = ("spark", "delta", "iceberg")


def lines(results: list[dict[str, Any]], sides: Sequence[str]) -> list[str]:
    """The lines of a table; hudi_fast's sides have a ratio column: Apache Hudi's seconds divided by theirs."""
    sides = [side for side in sides if any(side in one for one in results)]
    heads = ["work", "codec"]
    for side in sides:
        heads += [NAMES[side], ""] if side in OURS else [NAMES[side]]
    rows = [_line(heads), "|" + "---|" * len(heads)]
    for result in results:
        cells = [TITLES[result["case"]], CODECS[result["codec"]]]
        for side in sides:
            cells.append(_run(result.get(side)))
            if side in OURS and side in result:
                cells.append(f"**{result['hudi']['seconds'] / result[side]['seconds']:.1f} x**")
            elif side in OURS:
                cells.append("")
        rows.append(_line(cells))
    return rows


def others(results: list[dict[str, Any]], sides: Sequence[str]) -> list[str]:
    """The lines of a table of ``others.py``, whose results may be of several runs."""
    cases = [case for case in OTHERS if any(one["case"] == case and set(sides) & set(one) for one in results)]
    names = {"hudi_rs": "hudi-rs, record index"}
    rows = [_line(["work", *(names.get(side, NAMES[side]) for side in sides)]), "|" + "---|" * (len(sides) + 1)]
    for case in cases:
        merged = {side: run for one in results if one["case"] == case for side, run in one.items()}
        rows.append(_line([OTHERS[case], *(_run(merged.get(side)) for side in sides)]))
    return rows


def between(text: str, name: str, rows: list[str]) -> str:
    """``text`` with ``rows`` in place of the lines between the markers of that name."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n" + "\n".join(rows) + f"\n{end}{after}"


def main() -> None:
    """Rewrite the tables of docs/benchmarks.md."""
    results = [one for path in sys.argv[1:] for one in json.loads(Path(path).read_text())]
    text = PAGE.read_text(encoding="utf-8")
    beside = [one for one in results if "hudi" not in one]  # of others.py
    results = [one for one in results if one not in beside]
    changed = [one for one in results if one["case"] in ("incr1", "mor_incr1")]
    logged = [one for one in results if one["case"].startswith("mor_") and one not in changed]
    clustered = [one for one in results if one["case"].startswith("cluster_")]
    plain = [one for one in results if one not in (*logged, *clustered, *changed)]
    if plain:
        text = between(text, "speed", lines(plain, ("hudi", "local", "spark", "spark_rows")))
    if logged:
        text = between(text, "speed-mor", lines(logged, ("hudi", "hudi_rs", "local", "spark", "spark_rows")))
    if clustered:
        text = between(text, "speed-services", lines(clustered, ("hudi", "local", "spark")))
    if changed:
        text = between(text, "speed-incremental", lines(changed, ("hudi", "local", "spark")))
    if beside:
        text = between(text, "others", others(beside, ALONE))
        text = between(text, "others-spark", others(beside, ON_SPARK))
    PAGE.write_text(text, encoding="utf-8")


def _line(cells: Sequence[str]) -> str:
    return ("| " + " | ".join(cells) + " |").replace("|  |", "| |")


def _run(run: dict[str, Any] | None) -> str:
    """Seconds, their range, the first run, and megabytes."""
    if run is None:
        return "-"
    every = run["all_seconds"]
    span = f" ({min(every):.2f}–{max(every):.2f}; first {every[0]:.2f})" if len(every) > 1 else ""
    return f"{run['seconds']:.2f} s{span}, {run['peak_rss_mb']:,.0f} MB"


if __name__ == "__main__":
    main()
