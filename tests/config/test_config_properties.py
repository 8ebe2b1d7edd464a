import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.config.properties_file import format_properties, parse_properties
from hudi_fast.errors import CorruptTableError
from tests.support.examples import examples

DATA = Path(__file__).parent / "data" / "properties.zip"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a:b\nc d\n", {"a": "b", "c": "d"}),
        ("  a \t= b ", {"a": "b "}),
        ("a\\=\\:\\ b=c\\=d:e", {"a=: b": "c=d:e"}),
        ("# comment\n! comment\n\n   # another\na=1", {"a": "1"}),
        ("a=one,\\\n    two,\\\r\n\tthree", {"a": "one,two,three"}),
        ("a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a=\\u00e9\\ud83d\\ude00\\t\\q", {"a": "é😀\tq"}),
        ("a=1\ra=2", {"a": "2"}),
        ("a=x\x85y", {"a": "x\x85y"}),
        ("a=b\\", {"a": "b"}),
        ("a", {"a": ""}),
        ("a=  \\ b", {"a": " b"}),
        ("=b", {"": "b"}),
        ("# c\\\na=1", {"a": "1"}),
    ],
)
def test_parsing_follows_java(text, expected):
    assert parse_properties(text) == expected


def test_writing_escapes_as_java_does():
    text = format_properties({"a b": " x:y=z#!\\", "é": "😀\n\t"}, ["two\nlines", "é"])
    assert text == ("#two\n#lines\n#\\u00E9\na\\ b=\\ x\\:y\\=z\\#\\!\\\\\n\\u00E9=\\uD83D\\uDE00\\n\\t\n")


def test_a_malformed_unicode_escape_is_refused():
    with pytest.raises(CorruptTableError, match="four hexadecimal digits"):
        parse_properties("a=\\u12g4")


@settings(max_examples=examples(200))
@given(
    st.dictionaries(st.text(), st.text(), max_size=5), st.lists(st.text(alphabet="ab \n\ré#", max_size=6), max_size=2)
)
def test_what_is_written_is_read_back(props, comments):
    text = format_properties(props, comments)
    assert text.isascii()
    assert parse_properties(text) == props


def test_files_of_apache_hudi_survive_a_rewrite():
    with zipfile.ZipFile(DATA) as archive:
        for name in archive.namelist():
            text = archive.read(name).decode("iso-8859-1")
            body = [line for line in text.splitlines() if not line.startswith("#")]
            assert format_properties(parse_properties(text), []).splitlines() == body, name
