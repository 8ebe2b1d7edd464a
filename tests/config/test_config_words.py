"""Everyday words become options; a word and an option that differ are refused.

Module: hudi_fast.config.words.
"""

from __future__ import annotations

import operator
from typing import Any

import pytest

from hudi_fast.config.option_names import INDEX_WORDS, TABLE_TYPE_WORDS
from hudi_fast.config.options import find_option
from hudi_fast.config.words import Words, with_words
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError

KEY, NAME = "hoodie.datasource.write.recordkey.field", "hoodie.table.name"


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ({"name": "trips"}, "table.name", "trips"),
        ({"key": "id"}, "keys.record_key_fields", ("id",)),
        ({"key": ["id", "day"]}, "keys.record_key_fields", ("id", "day")),
        ({"partition_by": ("city", "day")}, "keys.partition_path_fields", ("city", "day")),
        ({"order_by": "ts"}, "merging.ordering_fields", ("ts",)),
        ({"table_type": "merge_on_read"}, "table.type", "MERGE_ON_READ"),
        ({"table_type": "COPY_ON_WRITE"}, "table.type", "COPY_ON_WRITE"),
        ({"index": "bucket"}, "index.type", "BUCKET"),
        ({"operation": "bulk_insert"}, "operation", "bulk_insert"),
    ],
)
def test_words_set_the_options_that_they_stand_for(words: Words, field: str, value: Any) -> None:
    assert operator.attrgetter(field)(WriteOptions.from_options(with_words({}, words))) == value


@pytest.mark.parametrize("word", INDEX_WORDS)
def test_each_index_word_is_an_index_type_that_is_supported(word: str) -> None:
    given = with_words(None, {"index": word})
    assert WriteOptions.from_options(given).index.type
    assert [key for key in given if key.endswith("enable")] == (
        [key for key in given if "record.level" in key] if "record" in word else []
    )


@pytest.mark.parametrize("word", TABLE_TYPE_WORDS)
def test_words_may_have_any_case(word: str) -> None:
    assert with_words(None, {"table_type": word.upper()}) == with_words(None, {"table_type": word})


def test_each_word_names_an_option_of_the_catalogue_by_its_first_spelling() -> None:
    values = {"table_type": TABLE_TYPE_WORDS[0], "index": INDEX_WORDS[-1]}
    given = {word: with_words(None, {word: values.get(word, "upsert")}) for word in Words.__annotations__}
    assert all(given.values())
    keys = [key for made in given.values() for key in made]
    assert all(find_option(key) is not None and find_option(key).key == key for key in keys)  # type: ignore[union-attr]


@pytest.mark.parametrize("spelling", find_option(KEY).keys)  # type: ignore[union-attr]
def test_a_word_and_an_option_agree_or_are_refused_in_every_spelling(spelling: str) -> None:
    assert with_words({spelling: "id, day"}, {"key": ["id", "day"]}) == {spelling: "id, day"}
    with pytest.raises(ConfigError, match=rf"key='id' contradicts the option {spelling}='x'\. Give one of the two"):
        with_words({spelling: "x"}, {"key": "id"})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"partitionby": "city"}, r"Unknown keyword argument: 'partitionby'; did you mean 'partition_by'\?"),
        ({"primary_key": "id"}, r"did you mean 'key'\?"),
        ({"precombine": "ts"}, r"did you mean 'order_by'\?"),
        ({"colour": 1}, "known are name, key, partition_by"),
        ({"index": "record_index"}, r"Unknown value of index: 'record_index'; did you mean 'record'\?"),
        ({"index": "hash"}, "known are simple, "),
        ({"key": 5}, "key takes the name of a column, or a list of names; got 5"),
        ({"key": []}, r"got \[\]"),
        ({"order_by": [""]}, "order_by takes"),
    ],
)
def test_what_is_no_word_or_no_value_is_refused_with_the_nearest_one(words: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        with_words({}, words)


def test_options_and_words_that_are_not_given_change_nothing() -> None:
    options = {NAME: "trips"}
    assert with_words(options, {}) == options
    assert with_words(options, {"key": None}) == options
    assert with_words(None, {}) == {}
    with pytest.raises(ConfigError, match="options is a mapping"):
        with_words("trips", {})  # type: ignore[arg-type]
