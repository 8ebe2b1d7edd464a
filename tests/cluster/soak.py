"""``make scale``: writes with faults on a cluster until there are enough of them.

Usage: ``python -m tests.cluster.soak --number 500 [--seed N] [--minutes M] [--only WORD] [--folder FOLDER]``. A write
counts if it was under way when its fault came. The table of a history that failed stays in the folder.
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import tempfile
import time
from itertools import count
from pathlib import Path

from tests.cluster.campaign import FAULTS, Tally, run_history
from tests.cluster.processes import Application
from tests.servers.spark_cluster import spark_cluster


def main() -> None:
    """Run histories; an error of one is raised."""
    parser = argparse.ArgumentParser(description="Kills on a Spark cluster, with a model of the rows.")
    parser.add_argument("--number", type=int, default=500, help="how many writes under a fault")
    parser.add_argument("--minutes", type=float, default=120.0, help="begin no history after this time")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**30), help="of the first history")
    parser.add_argument("--only", default="", help="faults whose name contains this text; all without it")
    parser.add_argument("--folder", type=Path, help="for tables and logs; by default a temporary one")
    given = parser.parse_args()
    among = [fault for fault in FAULTS if given.only in fault]
    if not among:
        parser.error(f"--only {given.only}: no fault has this text in its name; there are {', '.join(FAULTS)}")
    folder = given.folder or Path(tempfile.mkdtemp(prefix="cluster-"))
    started, tally = time.monotonic(), Tally()
    with spark_cluster(folder / "cluster") as cluster:
        application = Application(cluster, folder / "drivers.log")
        try:
            for seed in count(given.seed):
                place = folder / str(seed)
                place.mkdir(parents=True)
                run_history(application, place, seed, tally, among=among)
                shutil.rmtree(place)
                seconds = time.monotonic() - started
                print(f"seed {seed}, {seconds:.0f} s: {tally}", flush=True)
                if tally.faulted >= given.number or seconds > given.minutes * 60:
                    break
        finally:
            application.kill()


if __name__ == "__main__":
    main()
