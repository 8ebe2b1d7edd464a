"""A program: run the DAG of the page for two days. Arguments: the folder of the DAG's file. Prints JSON.

It runs with an ``AIRFLOW_HOME`` of its own.
"""

from __future__ import annotations

import json
import sys

import pendulum

sys.path.insert(0, sys.argv[1])

from daily_fares import daily_fares

dag = daily_fares()
said = []
for day in (1, 2):
    run = dag.test(logical_date=pendulum.datetime(2024, 1, day, tz="UTC"))
    (task,) = run.get_task_instances()
    said.append([str(run.state), task.xcom_pull(task_ids="upsert")])
print(json.dumps(said))
