"""Locations of the record index as they are stored."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from hudi_fast.errors import CorruptTableError, InvalidDataError
from hudi_fast.metadata_table.records import encode_file_ids, file_id_texts, instant_millis, instant_texts

IDS = [f"{uuid.UUID(int=number * 2**100 + 5)}-{number}" for number in (1, 7, 0)]


@pytest.mark.parametrize("ids", [IDS, [*IDS, "bucket-1"], ["00000001-bucket"], []])
@pytest.mark.parametrize("encoding", [0, 1])
def test_file_ids_are_decoded_as_they_were_encoded(ids: list[str], encoding: int) -> None:
    columns = encode_file_ids(pa.array(ids, pa.string()), encoding)
    assert file_id_texts(*columns).to_pylist() == ids
    numbers = [one in IDS and encoding == 0 for one in ids]
    assert columns[4].to_pylist() == [0 if number else 1 for number in numbers]
    assert [text == "" for text in columns[3].to_pylist()] == numbers


def test_a_row_without_file_id_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="file id"):
        encode_file_ids(pa.array([IDS[0], None]), 0)
    high, low, index, texts, encoding = encode_file_ids(pa.array(IDS[:1]), 0)
    for columns in (
        (pa.nulls(1, high.type), low, index, texts, encoding),
        (high, low, index, pa.nulls(1, texts.type), pa.array([1])),
    ):
        with pytest.raises(CorruptTableError, match="file id"):
            file_id_texts(*columns)
    with pytest.raises(CorruptTableError, match=r"\[2\]"):
        file_id_texts(high, low, index, texts, pa.array([2]))


def test_instants_are_milliseconds_in_the_zone_of_the_table() -> None:
    times = pa.array(["20240102030405006", None, "20240102030405006"])
    millis = instant_millis(times, "UTC")
    assert millis.to_pylist() == [1704164645006, None, 1704164645006]
    assert instant_texts(millis, "UTC").to_pylist() == times.to_pylist()
    assert instant_texts(instant_millis(pa.array(["20240102030405"]), "UTC"), "UTC").to_pylist() == [
        "20240102030405999"
    ]
    with pytest.raises(CorruptTableError):
        instant_millis(pa.array(["yesterday"]), "UTC")
