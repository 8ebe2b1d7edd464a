"""Times that the cleaner has put out of reach, but for those that a savepoint keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.plans import CleanMetadata, SavepointMetadata, encode_clean_metadata, encode_savepoint
from hudi_fast.timeline.transition import complete, create_requested, to_inflight
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import OPTIONS, options, plain_rows


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_cleaned_times_are_refused_unless_a_savepoint_keeps_them(version: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    hf.write(plain_rows(range(4)), path, options(table_version=version))
    for ts in (2, 3):
        hf.write(plain_rows([0], ts=ts), path, OPTIONS)
    opened = hf.HudiTable.open(path)
    first, second, third = opened.history()["instant"].to_pylist()
    put(path, Instant(first, "savepoint", State.INFLIGHT), encode_savepoint(SavepointMetadata({})))
    clean = CleanMetadata("20300101000000000", earliest_instant_to_retain=third)
    put(path, Instant("20300101000000000", "clean", State.REQUESTED), encode_clean_metadata(clean))
    assert opened.to_arrow(as_of=third).num_rows == 4
    assert max(opened.to_arrow(as_of=first)["ts"].to_pylist()) == 1
    for gone in (second, "2001-01-01"):
        with pytest.raises(hf.ConfigError, match=f"Cleaner cleaned up .* older than {third}"):
            opened.to_arrow(as_of=gone)


def put(path: Path, instant: Instant, body: bytes) -> None:
    storage = Storage(path)
    config = load_state(storage).config
    if instant.state is State.REQUESTED:
        create_requested(storage, config, instant)
    inflight = to_inflight(storage, config, instant)
    complete(storage, config, inflight, body, lambda: "20300101000000001")
