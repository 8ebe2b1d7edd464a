"""Fields of decoded values have the types that their classes declare."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudi_fast.errors import CorruptTableError
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, decode_commit_metadata
from hudi_fast.timeline.field_types import checked
from hudi_fast.timeline.plans import RollbackPlan, RollbackRequest
from hudi_fast.timeline.service_plans import IndexPart


@pytest.mark.parametrize(
    "value",
    [
        WriteStat("f", log_files=("a", "b"), cdc_stats={"c": 1}),
        CommitMetadata({"p": [WriteStat("f", "p/f")]}, {"schema": "{}"}),
        RollbackPlan("1", "commit", (RollbackRequest("p", "f", "0", ("a",), {"b": 2}),)),
        (IndexPart("files", "1", {}), IndexPart("column_stats", "1", {})),
    ],
)
def test_values_of_the_declared_types_pass(value: Any) -> None:
    assert checked(value) is value


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (WriteStat("f", num_writes="7"), "WriteStat.num_writes"),
        (WriteStat("f", num_writes=True), "WriteStat.num_writes"),
        (WriteStat("f", prev_base_file=3), "WriteStat.prev_base_file"),
        (WriteStat("f", log_files=("a", 1)), "WriteStat.log_files"),
        (CommitMetadata({"p": [WriteStat("f", path=["p"])]}), "WriteStat.path"),
        (CommitMetadata({1: []}), "CommitMetadata.partition_to_write_stats"),
        (RollbackPlan("1", "commit", (RollbackRequest("p", "f", "0", ("a", None)),)), "files_to_be_deleted"),
        ((IndexPart("files", "1", {}), IndexPart("files", None, {})), "IndexPart.upto"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_field(value: Any, field: str) -> None:
    with pytest.raises(TypeError, match=field):
        checked(value)


def test_a_commit_with_such_a_value_is_corrupt() -> None:
    stats = {"partitionToWriteStats": {"p": [{"fileId": "f", "numWrites": {"x": 1}}]}}
    with pytest.raises(CorruptTableError, match=r"num_writes.*\[file c\]"):
        decode_commit_metadata(json.dumps(stats).encode(), "c")
