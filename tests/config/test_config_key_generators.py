"""Key generators by class, by type, and inferred from the columns of a table."""

from __future__ import annotations

import pytest

from hudi_fast.config.option_names import (
    class_of_key_generator,
    infer_key_generator,
    key_generator_of_class,
    key_generator_of_type,
)

PACKAGE = "org.apache.hudi.keygen."


@pytest.mark.parametrize(
    ("class_name", "name"),
    [
        ("SimpleKeyGenerator", "SIMPLE"),
        ("SimpleAvroKeyGenerator", "SIMPLE"),
        ("GlobalAvroDeleteKeyGenerator", "GLOBAL_DELETE"),
        ("NonpartitionedAvroKeyGenerator", "NON_PARTITION"),
        ("MyOwnGenerator", None),
    ],
)
def test_a_class_and_its_avro_variant_are_one_generator(class_name: str, name: str | None) -> None:
    assert key_generator_of_class(PACKAGE + class_name) == name


def test_a_generator_has_the_class_that_leads_back_to_it() -> None:
    for name in ("SIMPLE", "COMPLEX", "TIMESTAMP", "CUSTOM", "NON_PARTITION", "AUTO_RECORD", "SPARK_SQL"):
        class_name = class_of_key_generator(name)
        assert class_name is not None
        assert key_generator_of_class(class_name) == name
    assert class_of_key_generator("USER_PROVIDED") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [(" simple_avro ", "SIMPLE"), ("Custom", "CUSTOM"), ("user_provided", "USER_PROVIDED"), ("mine", None)],
)
def test_types_are_read_in_any_case(text: str, name: str | None) -> None:
    assert key_generator_of_type(text) == name


@pytest.mark.parametrize(
    ("keys", "partitions", "name"),
    [
        (["id"], [], "NON_PARTITION"),
        (["id"], ["day"], "SIMPLE"),
        ([], ["day"], "SIMPLE"),
        (["id", "n"], ["day"], "COMPLEX"),
        (["id"], ["day", "city"], "COMPLEX"),
        (["id"], ["day:TIMESTAMP"], "CUSTOM"),
        (["id"], ["day:SIMPLE", "city:SIMPLE"], "CUSTOM"),
    ],
)
def test_a_generator_is_inferred_as_apache_hudi_does(keys: list[str], partitions: list[str], name: str) -> None:
    assert infer_key_generator(keys, partitions) == name
