import io
import json

import fastavro
import pytest

from hudi_fast.timeline import avro_models
from tests.timeline.stored_timelines import NAMES, bodies

SCHEMAS = {getattr(avro_models, name)["name"]: getattr(avro_models, name) for name in avro_models.__all__}


def without_docs(value):
    if isinstance(value, dict):
        return {key: without_docs(one) for key, one in value.items() if key != "doc"}
    return [without_docs(one) for one in value] if isinstance(value, list) else value


def test_schemas_are_those_that_apache_hudi_puts_into_headers():
    seen = set()
    for name in NAMES:
        if name.startswith("h015"):
            continue
        for _, body in bodies(name, ""):
            if not body.startswith(b"Obj\x01"):
                continue
            header = fastavro.reader(io.BytesIO(body)).metadata["avro.schema"]
            schema = json.loads(header)
            assert without_docs(schema) == SCHEMAS[schema["name"]], schema["name"]
            seen.add(schema["name"])
    assert seen == set(SCHEMAS)


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_valid_avro(name):
    assert fastavro.parse_schema(SCHEMAS[name])["name"] == f"org.apache.hudi.avro.model.{name}"
