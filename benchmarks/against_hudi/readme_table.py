"""Put the results of ``run.py --json`` into README.md, between its ``speed`` markers.

Usage: ``python readme_table.py RESULT.json [RESULT.json ...]``; the results are of one machine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN, END = "<!-- speed:begin -->", "<!-- speed:end -->"
TITLES = {
    "bulk_insert": "bulk_insert of 2 M rows",
    "up1": "upsert of 1 % (20 000 rows)",
    "up10": "upsert of 10 %, and 2.5 % new",
    "up100": "upsert of 100 %",
    "small": "upsert of 100 rows into 1 000",
    "tagging": "2 M keys looked up by bloom index, none there",
}
CODECS = {"zstd": "zstd", "default": "each side's own"}


def lines(results: list[dict[str, Any]]) -> list[str]:
    """The table, a line each."""
    rows = [
        "| work | codec | Apache Hudi | hudi_fast, one process | | hudi_fast, Spark | |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        hudi = result["hudi"]
        cells = [TITLES[result["case"]], CODECS[result["codec"]], _run(hudi)]
        for side in ("local", "spark"):
            cells += [_run(result[side]), f"**{hudi['seconds'] / result[side]['seconds']:.1f} x**"]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def main() -> None:
    """Rewrite the part of README.md between the markers."""
    results = [one for path in sys.argv[1:] for one in json.loads(Path(path).read_text())]
    text = README.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{BEGIN}\n" + "\n".join(lines(results)) + f"\n{END}{after}")


def _run(run: dict[str, Any]) -> str:
    return f"{run['seconds']:.2f} s, {run['peak_rss_mb']:,.0f} MB"


if __name__ == "__main__":
    main()
