"""A program: run the flow of the page, with a server of its own. Arguments: the folder of its file, and CSV files."""

from __future__ import annotations

import json
import sys

sys.path.insert(0, sys.argv[1])

from load_fares import load_fares
from prefect.testing.utilities import prefect_test_harness

with prefect_test_harness(server_startup_timeout=120):
    states = [load_fares(sys.argv[2:], return_state=True) for _ in range(2)]
print(json.dumps([state.is_completed() for state in states]))
