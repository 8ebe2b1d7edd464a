import io
import json

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.container import is_avro_container, read_single_record, write_single_record

SCHEMA = {
    "type": "record",
    "name": "Thing",
    "namespace": "x.y",
    "fields": [
        {"name": "text", "type": {"type": "string", "avro.java.string": "String"}},
        {"name": "counts", "type": ["null", {"type": "map", "values": "long"}], "default": None},
        {"name": "version", "type": ["int", "null"], "default": 1},
    ],
}


@given(
    st.text(),
    st.none() | st.dictionaries(st.text(max_size=5), st.integers(-(2**63), 2**63 - 1), max_size=4),
    st.none() | st.integers(-(2**31), 2**31 - 1),
)
def test_a_record_is_read_back_here_and_by_fastavro(text, counts, version):
    record = {"text": text, "counts": counts, "version": version}
    data = write_single_record(SCHEMA, record)
    assert is_avro_container(data)
    assert read_single_record(data) == record
    assert list(fastavro.reader(io.BytesIO(data))) == [record]


def test_the_header_holds_the_schema_as_given():
    reader = fastavro.reader(io.BytesIO(write_single_record(SCHEMA, {"text": ""})))
    assert json.loads(reader.metadata["avro.schema"]) == SCHEMA
    assert set(reader.metadata) == {"avro.schema"}


def test_missing_fields_take_defaults_and_equal_input_gives_equal_bytes():
    data = write_single_record(SCHEMA, {"text": "a"})
    assert read_single_record(data) == {"text": "a", "counts": None, "version": 1}
    assert data == write_single_record(SCHEMA, {"text": "a"})


def test_a_container_with_two_records_is_refused():
    sink = io.BytesIO()
    fastavro.writer(sink, SCHEMA, [{"text": "a"}, {"text": "b"}])
    with pytest.raises(CorruptTableError, match="one record, found 2"):
        read_single_record(sink.getvalue(), "f")


@given(st.data())
def test_a_container_that_is_cut_off_is_refused(data):
    whole = write_single_record(SCHEMA, {"text": "some text", "counts": {"a": 1}})
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CorruptTableError):
        read_single_record(whole[:cut], "f")
