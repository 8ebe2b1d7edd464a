"""Shared parts of the commands: options in text, instants, confirmation, printed results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from hudi_fast.cli.shared import (
    confirm,
    instant_text,
    options_of,
    show_answer,
    show_plan,
    show_result,
    show_table,
    storage_option,
    storage_options,
)


def printed(call: Callable[[], Any], **how: Any) -> Result:
    """What a command prints that makes this call."""

    @click.command()
    def command() -> None:
        call()

    return CliRunner().invoke(command, **how)


def test_options_are_split_at_the_first_equals_sign() -> None:
    assert options_of(("a = 1", "b=x=y", "c=")) == {"a": " 1", "b": "x=y", "c": ""}
    assert options_of(()) == {}


@pytest.mark.parametrize("pair", ["a", "=1", " =1"])
def test_text_that_is_no_option_is_wrong_usage(pair: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is not KEY=VALUE") as raised:
        options_of((pair,), "--storage-option")
    assert raised.value.param_hint == "--storage-option"


def test_storage_options_are_those_of_all_commands_on_the_line() -> None:
    @click.group()
    @storage_option
    def outer() -> None: ...

    @outer.command()
    @storage_option
    def inner() -> None:
        click.echo(json.dumps(storage_options()))

    result = CliRunner().invoke(outer, ["--storage-option", "region=x", "inner", "--storage-option", "user=y"])
    assert json.loads(result.output) == {"region": "x", "user": "y"}


def test_an_instant_is_a_number() -> None:
    assert instant_text(" 20240102030405006 ") == "20240102030405006"
    for text in ("", "latest", "2024-01-02", "٣"):
        with pytest.raises(click.BadParameter, match="not the time of an instant"):
            instant_text(text)


@pytest.mark.parametrize(
    ("answer", "yes", "code"), [("y\n", False, 0), ("n\n", False, 1), ("", False, 1), ("", True, 0)]
)
def test_confirmation_is_asked_for_unless_it_is_given(answer: str, yes: bool, code: int) -> None:
    assert printed(lambda: confirm("Really?", yes), input=answer).exit_code == code


def test_a_table_for_people_hides_columns_and_json_has_all() -> None:
    table = pa.table({"instant": ["20240102030405006"], "path": ["p/f"], "secret": ["s"]})
    text = printed(lambda: show_table("Files", table, False, ["secret"], "A note.")).output
    assert "Files (1)" in text
    assert "A note." in text
    assert "20240102030405006" in text
    assert "secret" not in text.lower()
    assert [json.loads(printed(lambda: show_table("Files", table, True, ["secret"])).output)] == table.to_pylist()


def test_a_long_plan_is_cut_for_people_and_whole_as_json() -> None:
    table = pa.table({"path": [f"file-{number:03d}" for number in range(60)]})
    text = printed(lambda: show_plan("Plan", table, False, "Nothing is changed.", files=60)).output
    assert "file-049" in text
    assert "file-050" not in text
    assert "10 more; --json shows all. Nothing is changed." in " ".join(text.split())
    whole = json.loads(printed(lambda: show_plan("Plan", table, True, files=60)).output)
    assert whole == {"files": 60, "plan": table.to_pylist()}


@dataclass
class Done:
    """The result of a service."""

    instant: str
    files: int
    seconds: float = 1.5


def test_a_result_for_people_says_what_was_done_or_that_nothing_was() -> None:
    assert "Cleaned" in printed(lambda: show_result("Cleaned", "Nothing to clean", Done("20240102", 3), False)).output
    nothing = printed(lambda: show_result("Cleaned", "Nothing to clean", Done("", 0), False)).output
    assert "Nothing to clean" in nothing
    assert "1.5" not in nothing


def test_a_result_as_json_has_its_fields() -> None:
    shown = printed(lambda: show_result("Cleaned", "", Done("20240102", 3), True, without=("seconds",))).output
    assert json.loads(shown) == {"instant": "20240102", "files": 3}
    answer = {"instants": ["1"], "files": 2}
    assert json.loads(printed(lambda: show_answer("Done", "", "1", answer, True)).output) == {"instant": "1", **answer}
