"""docs/migrate.md: its program runs as printed."""

import re
from pathlib import Path

import hudi_fast as hf

TEXT = (Path(__file__).parents[2] / "docs" / "migrate.md").read_text(encoding="utf-8")


def test_every_name_of_the_page_is_there():
    names = set(re.findall(r"`hf\.([a-z_]+)", TEXT)) | set(re.findall(r"`hudi_fast\.(accelerate)`", TEXT))
    assert {"accelerate", "merge", "sink"} <= names
    assert [name for name in names if not hasattr(hf, name)] == []
