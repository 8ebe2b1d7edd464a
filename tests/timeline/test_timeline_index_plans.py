"""Bodies of indexing instants: real ones are read, ours hold the same records in the same schema."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import fastavro
import pytest

from hudi_fast.errors import CorruptTableError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import read_instant_body, read_requested_body
from hudi_fast.timeline.service_plans import (
    IndexPart,
    decode_index_metadata,
    decode_index_plan,
    encode_index_metadata,
    encode_index_plan,
)
from hudi_fast.view.table_state import load_state
from tests.support.golden import Golden


def records(body: bytes) -> tuple[object, list[object]]:
    """The schema, without what it says for people, and the records of a container, by fastavro."""
    reader = fastavro.reader(io.BytesIO(body))
    return without_docs(reader.writer_schema), list(reader)


def without_docs(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_docs(one) for one in schema]
    if isinstance(schema, dict):
        return {name: without_docs(one) for name, one in schema.items() if name != "doc"}
    return schema


def test_plans_and_metadata_of_real_hudi(golden: Callable[[str], Golden]) -> None:
    state = load_state(Storage(golden("mor_v9_secondary_index").table))
    instants = state.timeline.of_action("indexing")
    first = state.timeline.writes()[0].requested
    parts = [(IndexPart("secondary_index_idx_name", first),), (IndexPart("expr_index_idx_day", first),)]
    for instant, expected in zip(instants, parts, strict=True):
        plan = read_requested_body(state.storage, state.config, instant)
        done = read_instant_body(state.storage, state.config, instant)
        assert decode_index_plan(plan) == decode_index_metadata(done) == expected
        assert records(encode_index_plan(expected)) == records(plan)
        assert records(encode_index_metadata(expected)) == records(done)


def test_what_is_no_plan_is_damage() -> None:
    with pytest.raises(CorruptTableError):
        decode_index_plan(b"nothing")


def test_several_parts_and_free_keys_come_back() -> None:
    parts = (IndexPart("record_index", "1"), IndexPart("secondary_index_x", "", {"a": "b"}))
    assert decode_index_plan(encode_index_plan(parts)) == parts
    assert decode_index_metadata(encode_index_metadata(parts)) == parts
