"""A program: materialize the assets of the page twice. Arguments: the folder of their file. Prints JSON."""

from __future__ import annotations

import json
import sys

sys.path.insert(0, sys.argv[1])

from dagster import DagsterInstance, materialize
from hudi_io import definitions, fares, fares_by_city

said = []
with DagsterInstance.ephemeral() as instance:
    for _ in range(2):
        done = materialize([fares, fares_by_city], resources=definitions.resources, instance=instance)
        (made,) = done.asset_materializations_for_node("fares")
        said.append([done.success, made.metadata["inserts"].value, made.metadata["updates"].value])
print(json.dumps(said))
