"""``make scale``: histories on a cluster until there are enough of them.

Usage: ``python -m tests.cluster.soak --number 500 [--seed N] [--folder FOLDER]``. The table of a history that failed
stays in the folder.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import tempfile
import time
from pathlib import Path

from tests.cluster.campaign import Tally, run_history
from tests.servers.spark_cluster import spark_cluster


def main() -> None:
    """Run the histories; an error of one is raised."""
    parser = argparse.ArgumentParser(description="Kills on a Spark cluster, with a model of the rows.")
    parser.add_argument("--number", type=int, default=500, help="how many histories")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**30), help="of the first history")
    parser.add_argument("--folder", type=Path, help="for tables and logs; by default a temporary one")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="cluster-"))
    started, tally = time.monotonic(), Tally()
    with spark_cluster(folder / "cluster") as cluster:
        for seed in range(given.seed, given.seed + given.number):
            place = folder / str(seed)
            place.mkdir(parents=True)
            run_history(cluster, place, seed, tally)
            shutil.rmtree(place)
            print(f"seed {seed}, {time.monotonic() - started:.0f} s: {tally}", flush=True)


if __name__ == "__main__":
    main()
