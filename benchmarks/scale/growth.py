"""How seconds and peak memory grow with rows, columns, key length, file groups, partitions, log files and instants.

::

    axis, size ─► inputs ─► starting tables, made by hudi_fast ─► each step of each side in a process of its own
                                                                   ─► rows compared with the inputs ─► tables

The scripts of :mod:`benchmarks.against_hudi` carry out the steps: the first run of a process, on a small table of the
same kind, does not count. Each run writes to a copy of the starting table, or reads it. Memory is that of all processes
of a side. Number of rows, keys, ordering values and one more column are compared with those of the inputs. Cleaning,
archiving and compaction do not run inside a write.

Usage::

    python -m benchmarks.scale.growth --scratch FOLDER [--axes rows,columns,...] [--sides local,spark,hudi]
        [--steps load,upsert,...] [--runs 5] [--max rows=2000000,groups=100] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from benchmarks.against_hudi.side import Work, write_options
from benchmarks.against_hudi.sides import run_side
from benchmarks.scale.growth_axes import AXES, COW, STEPS, Step
from benchmarks.scale.growth_data import DIGEST_COLUMNS, Digest, Inputs, Shape, digest, make_inputs, start_table
from benchmarks.scale.growth_tables import as_text

SIDES = ("local", "spark", "hudi")
RUNS_OF_LARGEST = 3
ALONE = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
"""Services that a write would carry out."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The inputs of one shape, and the starting tables made of them; each is made when it is first asked for."""

    folder: Path
    shape: Shape
    inputs: Inputs

    @staticmethod
    def of(folder: Path, shape: Shape) -> Tables:
        """Write the inputs into a new folder."""
        shutil.rmtree(folder, ignore_errors=True)
        return Tables(folder, shape, _in_process(make_inputs, folder / "inputs", shape))

    def start(self, step: Step) -> Path | None:
        """The table that a step starts from; None for a load."""
        if step.writes == "base":
            return None
        updates = self._updates_before(step)
        path = self.folder / f"{step.table_type}-{step.index}-{updates}"
        if not path.exists():
            options = self.options(replace(step, operation="insert", writes="base"))
            _in_process(start_table, path, self.inputs, self.shape, options, updates)
        return path

    def rows(self, step: Step) -> Path | None:
        """The input that a step writes: all rows, or the last update."""
        if not step.writes:
            return None
        return self.inputs.base if step.writes == "base" else self.inputs.update(self.shape.updates - 1)

    def digest_after(self, step: Step) -> Digest:
        """The digest of the rows that a step leaves or reads."""
        return self.inputs.digests[self._updates_before(step) + (step.writes == "update")]

    def options(self, step: Step) -> dict[str, str]:
        """The options of all writes."""
        work = Work(step.operation, step.writes or None, None, "", "zstd", step.table_type, step.index)
        return {**write_options(work), **self.more_options()}

    def more_options(self) -> dict[str, str]:
        """The options that the sides do not add on their own."""
        split = {
            "hoodie.copyonwrite.insert.auto.split": "false",
            "hoodie.copyonwrite.insert.split.size": str(self.shape.rows // self.shape.groups),
        }
        return {**ALONE, **split}

    def _updates_before(self, step: Step) -> int:
        if step.table_type == COW or step.writes == "base":
            return 0
        return self.shape.updates - 1 if step.writes == "update" else self.shape.logs


def main() -> None:
    """Measure the axes, print a table of each, and write the results."""
    given = _arguments()
    scratch = given.scratch.resolve() / "growth"
    results: list[dict[str, Any]] = []
    for name in given.axes:
        for size in AXES[name].sizes:
            if size <= given.max.get(name, size):
                results += _measure(name, size, scratch / f"{name}-{size}", given)
                if given.json:
                    given.json.write_text(json.dumps(results, indent=1) + "\n")
        print(as_text([one for one in results if one["axis"] == name]) + "\n", flush=True)


def _measure(name: str, size: int, folder: Path, given: argparse.Namespace) -> list[dict[str, Any]]:
    """The results of all steps and sides at one size."""
    axis = AXES[name]
    shape = axis.shape(size)
    tables, small = Tables.of(folder / "large", shape), Tables.of(folder / "small", _small(shape))
    found = []
    for step_name in (one for one in axis.steps if one in given.steps):
        for side in given.sides:
            if axis.measured(step_name, size) and (side != "hudi" or size <= axis.hudi):
                runs = min(given.runs, RUNS_OF_LARGEST) if side == "hudi" or size == axis.sizes[-1] else given.runs
                run = _run(side, STEPS[step_name], tables, small, runs, given.cores)
                found.append({"axis": name, "size": size, "step": step_name, "side": side, **run})
                figures = f"{run['seconds']:.3f} s, {run['peak_rss_mb']:.0f} MB"
                print(f"{name} {size}: {step_name}, {side}: {figures}", file=sys.stderr, flush=True)
    shutil.rmtree(folder)
    return found


def _run(side: str, step: Step, tables: Tables, small: Tables, runs: int, cores: int) -> dict[str, Any]:
    """Measure a step, and compare its rows."""
    lookup = step.operation == "lookup"
    start, out = tables.start(step), tables.folder / "out"
    arguments = {
        "operation": step.operation,
        "rows": tables.rows(step),
        "start": start,
        "out": out,
        "codec": "zstd",
        "table-type": step.table_type,
        "index": step.index,
        "runs": runs,
        "warm-rows": small.rows(step),
        "warm-start": start if lookup else small.start(step),  # the small table does not have the keys
        "cores": cores,
        "keys": tables.inputs.keys if lookup else None,
        "options": json.dumps(tables.more_options()),
    }
    run = run_side(side, arguments, tables.folder)
    if lookup:
        found: object = sorted((key, ts) for key, ts in run.pop("found"))
        expected: object = tables.inputs.found
    else:
        found, expected = _digest(step, out, tables.inputs), tables.digest_after(step)
        shutil.rmtree(out)
    if found != expected:
        raise SystemExit(f"{side}, {step.title}: found {found}, expected {expected}")
    return run


def _digest(step: Step, out: Path, inputs: Inputs) -> Digest:
    """The digest of the rows that a step left or read; of a compacted table those of its base files."""
    import hudi_fast as hf

    columns = [name for name in DIGEST_COLUMNS if name in ds.dataset(inputs.base).schema.names]
    if step.operation == "read":
        return digest(ds.dataset(out).to_batches(columns=columns))
    kind = "read_optimized" if step.operation == "compact" else "snapshot"
    return digest(hf.HudiTable.open(out).to_batches(columns=columns, query_type=kind))


def _small(shape: Shape) -> Shape:
    """A small table of the same kind, for the first run of a process."""
    return replace(
        shape,
        rows=2_000,
        groups=min(shape.groups, 10),
        partitions=min(shape.partitions, 10),
        update_rows=20,
        updates=min(shape.updates, 2),
        logs=min(shape.logs, 1),
        instants=1,
    )


def _in_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process of its own, whose memory then goes back to the system."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", type=Path, required=True, help="folder for data and tables; up to 12 GB")
    parser.add_argument("--axes", type=_names_of(AXES), default=list(AXES), help=", ".join(AXES))
    parser.add_argument("--steps", type=_names_of(STEPS), default=list(STEPS), help=", ".join(STEPS))
    parser.add_argument("--sides", type=_names_of(SIDES), default=list(SIDES), help=", ".join(SIDES))
    parser.add_argument(
        "--runs", type=int, default=5, help="medians are printed; 3 at most for Hudi and the largest size"
    )
    parser.add_argument("--max", type=_sizes, default={}, help="the largest size of some axes: rows=2000000,groups=100")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file for the results")
    return parser.parse_args()


def _names_of(known: Iterable[str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        wrong = set(text.split(",")) - set(known)
        if wrong:
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(wrong))} is none of {', '.join(known)}")
        return text.split(",")

    return names


def _sizes(text: str) -> dict[str, int]:
    pairs = dict(pair.split("=") for pair in text.split(","))
    _names_of(AXES)(",".join(pairs))
    return {name: int(size) for name, size in pairs.items()}


if __name__ == "__main__":
    main()
