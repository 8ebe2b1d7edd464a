"""Small tables to be cleaned, and what became of their files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.table.services import TableServices
from hudi_fast.timeline.instants import Instant, State, read_instant_body
from hudi_fast.timeline.plans import CleanMetadata, SavepointMetadata, decode_clean_metadata, encode_savepoint
from hudi_fast.timeline.transition import complete, to_inflight
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options, plain_rows

__all__ = [
    "COMMITS",
    "VERSIONS",
    "clean_metadata",
    "data_files",
    "drop_savepoint",
    "save",
    "services",
    "write_times",
    "writes",
]

COMMITS = "hoodie.clean.commits.retained"
VERSIONS = "hoodie.clean.fileversions.retained"


def services(path: str | Path | Storage) -> TableServices:
    """The services of a table, also through a storage of the test's own."""
    return TableServices(path if isinstance(path, Storage) else Storage(path))


def writes(version: str = "9", metadata: bool = True, mor: bool = False, **more: Any) -> dict[str, Any]:
    """Options of writes that neither clean nor archive."""
    made = mor_options(table_version=version, **more) if mor else options(table_version=version, **more)
    return {
        **made,
        "hoodie.metadata.enable": str(metadata).lower(),
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
    }


def write_times(path: Path, times: int, settings: dict[str, Any], first: int = 1, keys: range = range(4)) -> list[str]:
    """Upsert the same rows some times; the instants."""
    done = []
    for ts in range(first, first + times):
        done.append(hf.write(plain_rows(keys, ts=ts, text=f"t{ts}-"), path, settings).instant)
    return done


def data_files(path: str | Path, folder: str = "") -> dict[str, list[str]]:
    """Instants in the names of base and log files, sorted, by partition path."""
    found: dict[str, list[str]] = {}
    for file in sorted(Path(path).rglob("*")):
        partition = file.parent.relative_to(path).as_posix()
        if file.is_file() and not partition.startswith(".hoodie") and not file.name.endswith(".crc"):
            if file.suffix == ".parquet":
                found.setdefault(partition, []).append(file.stem.rpartition("_")[2])
            elif ".log." in file.name:
                found.setdefault(partition, []).append(file.name.partition(".log.")[0].rpartition("_")[2])
    return {partition: sorted(times) for partition, times in found.items() if partition.startswith(folder)}


def clean_metadata(path: str | Path, instant: str) -> CleanMetadata:
    """What a completed clean recorded."""
    state = load_state(Storage(path))
    found = state.timeline.find(instant, "clean")
    assert found is not None
    assert found.is_completed
    return decode_clean_metadata(read_instant_body(state.storage, state.config, found))


def save(path: Path, instant: str) -> None:
    """Make a savepoint of the newest commit, of the newest slices."""
    storage = Storage(path)
    state = load_state(storage, as_of=instant)
    files: dict[str, tuple[str, ...]] = {}
    for partition in state.view.lister.partitions():
        slices = latest_slices(state.view, partition)
        bases = [one.base_file.name for one in slices if one.base_file is not None]
        files[partition] = (*bases, *(log.name for one in slices for log in one.log_files))
    point = to_inflight(storage, state.config, Instant(instant, "savepoint", State.INFLIGHT))
    body = encode_savepoint(SavepointMetadata(files, savepointed_at=int(time.time() * 1000)))
    complete(storage, state.config, point, body, lambda: "20300101000000000")


def drop_savepoint(path: Path, instant: str) -> None:
    """Take a savepoint away again."""
    folder = path / load_state(Storage(path)).config.timeline_folder
    for file in folder.glob(f"{instant}*.savepoint*"):
        file.unlink()
