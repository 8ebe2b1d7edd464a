"""JSON of tables and stores: what Java programs write is read, and nothing else ends in an error but ValueError."""

from __future__ import annotations

import pytest

from hudi_fast.storage.untrusted import stored_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, -9223372036854775808, 9223372036854775807]}', {"a": [1, -(2**63), 2**63 - 1]}),
        (b'{"t": "20260101000000000000000", "x": 1.5e300}', {"t": "20260101000000000000000", "x": 1.5e300}),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (b'\xef\xbb\xbf{"byte order mark": 1}', {"byte order mark": 1}),
    ],
)
def test_values(text: str | bytes, value: object) -> None:
    assert stored_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        b"\xff",
        b'"\xed\xa0\xbd"',
        "[" * 100_000,
        '{"a":' * 100_000,
        "9" * 19,
        f"-{2**63 + 1}",
        "9" * 10_000,
        r'["\ud83d"]',
    ],
    ids=range(10),
)
def test_what_no_java_program_writes_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"char|codec|deeply|64 bits|digits|surrogates"):
        stored_json(text)
