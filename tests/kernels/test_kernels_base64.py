"""The reader of base64 against the standard library.

Module: kernels.base64_text.
"""

from __future__ import annotations

import base64
import binascii

import pytest
from hudi_fast.kernels.bloom import from_base64
from hypothesis import given
from hypothesis import strategies as st


@given(data=st.binary(max_size=300))
def test_bytes_come_back_from_their_text(data):
    assert from_base64(base64.b64encode(data)) == data


@given(data=st.binary(min_size=1, max_size=60), at=st.integers(0, 79), byte=st.integers(0, 255))
def test_a_changed_text_is_read_or_refused_as_by_the_standard_library(data, at, byte):
    text = bytearray(base64.b64encode(data))
    text[at % len(text)] = byte
    try:
        expected = binascii.a2b_base64(bytes(text), strict_mode=True)
    except binascii.Error:
        with pytest.raises(binascii.Error):
            from_base64(bytes(text))
    else:
        assert from_base64(bytes(text)) == expected


@pytest.mark.parametrize("text", [b"a", b"ab=c", b"====", b"!aaa" * 3, b"aaaa\n", b"aa==aaaa", b"aaaaaaa", b"\xc3\xa4"])
def test_what_is_not_base64_is_refused(text):
    with pytest.raises(binascii.Error):
        from_base64(text)
