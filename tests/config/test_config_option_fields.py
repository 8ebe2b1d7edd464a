"""Dataclasses of options: each takes its own options from one dictionary."""

from __future__ import annotations

import pytest

from hudi_fast.config.option_fields import OptionValues
from hudi_fast.config.options import written_options
from hudi_fast.config.service_options import ArchiveOptions, CleanOptions
from hudi_fast.errors import ConfigError, HudiWarning

OPTIONS = {"hoodie.clean.commits.retained": "7", "hoodie.keep.max.commits": 40, "hoodie.keep.min.commits": "20"}


def test_one_dictionary_makes_several_dataclasses() -> None:
    values = written_options(OPTIONS)
    assert sorted(option.key for option in values) == sorted(OPTIONS)
    assert CleanOptions.of(values) == CleanOptions.from_options(OPTIONS)
    assert CleanOptions.of(values) != CleanOptions.of({})
    assert ArchiveOptions.of(values) == ArchiveOptions.from_options(OPTIONS)


@pytest.mark.parametrize("kind", [ArchiveOptions, CleanOptions])
def test_the_text_of_values_shows_what_differs_from_the_defaults(kind: type[OptionValues]) -> None:
    assert repr(kind.of({})) == f"{kind.__name__}()"


def test_the_text_of_values_names_a_given_one() -> None:
    assert "7" in repr(CleanOptions.from_options(OPTIONS))


def test_an_invalid_value_and_an_unknown_key_are_named() -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.clean\.commits\.retained"):
        written_options({"hoodie.clean.commits.retained": "many"})
    with pytest.warns(HudiWarning, match=r"hoodie\.clean\.comits"):
        assert written_options({"hoodie.clean.comits": "7"}) == {}


def test_keys_below_the_prefix_of_extra_metadata_are_free() -> None:
    options = {"hoodie.datasource.write.commitmeta.key.prefix": "mine.", "mine.note": "x"}
    assert [option.key for option in written_options(options)] == ["hoodie.datasource.write.commitmeta.key.prefix"]
    with pytest.raises(ConfigError, match=r"yours\.note.*'mine\.'"):
        written_options({**options, "yours.note": "x"})
