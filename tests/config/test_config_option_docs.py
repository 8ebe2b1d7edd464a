from pathlib import Path

from hudi_fast.config.generated_docs import options_page
from hudi_fast.config.options import OPTIONS

PAGE = Path(__file__).parents[2] / "docs" / "options.md"


def test_the_page_is_what_the_registry_prints():
    assert PAGE.read_text(encoding="utf-8") == options_page()


def test_the_page_names_every_spelling_of_every_option():
    page = options_page()
    assert [key for option in OPTIONS for key in option.keys if f"`{key}`" not in page] == []
