"""What the site needs beyond Markdown: mkdocs hooks and a griffe extension, named in mkdocs.yml.

- Fences that say ``python spark`` (run by the tests in a Spark session) become plain ``python`` fences.
- Links to files outside docs/ lead to the repository.
- The tables of measured times get charts (``site_charts.py``).
- The page on the command line gets the help text of every command.
- Sphinx roles in docstrings become code: the site has no Sphinx.
- Classes of ``hudi_fast.values.dataclass`` are shown as dataclasses.
- ``llms.txt`` lists the pages with their first sentences, and ``llms-full.txt`` has their text, for language models
  (https://llmstxt.org).
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads this file by its path, outside of any package
from site_charts import with_charts

__all__ = ["Dataclasses", "PlainRoles", "on_nav", "on_page_markdown", "on_post_build"]

SPARK_FENCE = re.compile(r"^```python spark$", re.MULTILINE)
LINK = re.compile(r"(?<=\]\()(?P<path>(?:\.\./)+[^)#:\s]+)")
ROLE = re.compile(r":(?:py:)?(?:mod|class|func|meth|attr|data|exc|obj):`~?(?P<target>[^`]+)`")
FIRST_PARAGRAPH = re.compile(r"(?:\A|\n\s*\n)(?!```|[#<|\-!\s])(?P<text>.+?)(?=\n\s*\n|\Z)", re.DOTALL)
MARKDOWN_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\([^)]*\)")
HELP_MARK = "<!-- command help: the site shows it here -->"


_nav: list[Any] = []
_texts: dict[str, str] = {}
"""Markdown of the pages of this build, by source path."""


def on_nav(nav: Any, **_: Any) -> Any:
    """Keep the order and the sections of the pages."""
    _nav[:] = nav.items
    return nav


def on_post_build(*, config: Any, **_: Any) -> None:
    """Write the texts for language models."""
    head = f"# {config.site_name}\n\n> {config.site_description}.\n"
    lines, texts = [head], [head]
    for item in _nav:
        pages = [one for one in (item.children if item.is_section else [item]) if one.is_page]
        if not pages:  # a link to another site
            continue
        if item.is_section:
            lines.append(f"\n## {item.title}\n")
        for page in pages:
            text = _texts[page.file.src_uri]
            found = FIRST_PARAGRAPH.search(text)
            first = " ".join(MARKDOWN_LINK.sub(r"\g<text>", found["text"]).split()) if found else ""
            sentence = f": {first.partition('. ')[0].rstrip('.:')}" if first else ""
            lines.append(f"- [{page.title}]({page.canonical_url}){sentence}")
            texts.append(f"\n<!-- {page.canonical_url} -->\n\n{text}")
    folder = Path(config.site_dir)
    (folder / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "llms-full.txt").write_text("\n".join(texts), encoding="utf-8")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """The Markdown of a page as the site shows it."""
    markdown = with_charts(SPARK_FENCE.sub("```python", markdown))
    folder = posixpath.dirname(page.file.src_uri)

    def resolve(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, link["path"]))
        if target == "docs" or target.startswith("docs/"):
            return link["path"]
        return f"{config.repo_url}/blob/main/{target}"

    markdown = LINK.sub(resolve, markdown)
    markdown = markdown.replace(HELP_MARK, _command_help()) if HELP_MARK in markdown else markdown
    _texts[page.file.src_uri] = markdown
    return markdown


def _command_help() -> str:
    import click

    from hudi_fast.cli.main import cli

    parts = ["## All options\n"]
    for name, command in sorted(cli.commands.items()):
        context = click.Context(command, info_name=f"hudi-fast {name}", terminal_width=100)
        parts.append(f"### {name}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


class PlainRoles(griffe.Extension):
    """Replaces Sphinx roles in docstrings by the name that they refer to, as code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = ROLE.sub(r"`\g<target>`", obj.docstring.value)


class Dataclasses(griffe.Extension):
    """Shows classes of ``hudi_fast.values.dataclass`` as dataclasses, with their arguments."""

    def on_alias_instance(self, *, alias: griffe.Alias, **_: Any) -> None:
        """Let an import of the decorator name that of the standard library."""
        if alias.target_path == "hudi_fast.values.dataclass":
            alias.target_path = "dataclasses.dataclass"
