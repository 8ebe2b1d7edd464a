"""docs/streaming.md: its programs run as printed, and the options that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

from hudi_fast.config.options import find_option
from hudi_fast.spark_api.streaming.exactly_once import CHECKPOINT_KEY

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "streaming.md").read_text(encoding="utf-8")


def test_the_options_that_the_page_names_are_options():
    named = re.findall(r"`((?:hoodie|hudi_fast)\.[a-zA-Z_.]+)`", TEXT)
    assert len(named) > 10
    assert [key for key in named if find_option(key) is None] == []
    assert CHECKPOINT_KEY in TEXT
