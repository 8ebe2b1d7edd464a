"""Options of callbacks and validators: what they become, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.config.monitoring_options import VALIDATOR_CLASSES, HookOptions, SqlCheck

C, V = "hoodie.write.commit.callback.", "hoodie.precommit.validators"
EQUALITY, INEQUALITY, SINGLE = VALIDATOR_CLASSES
URL = {f"{C}on": "true", f"{C}http.url": "http://host/x"}


def test_nothing_is_called_by_default() -> None:
    hooks = HookOptions.from_options({})
    assert not hooks.http_on
    assert not hooks.validates
    assert hooks.checks == ()


def test_queries_become_checks() -> None:
    hooks = HookOptions.from_options(
        {
            V: f"{EQUALITY},{SINGLE}",
            f"{V}.equality.sql.queries": "select sum(a) from <TABLE_NAME>; select b from <TABLE_NAME>;",
            f"{V}.single.value.sql.queries": "select count(*) from <TABLE_NAME> where a is null#0",
        }
    )
    assert hooks.checks == (
        SqlCheck(EQUALITY, "equality", "select sum(a) from <TABLE_NAME>"),
        SqlCheck(EQUALITY, "equality", "select b from <TABLE_NAME>"),
        SqlCheck(SINGLE, "single", "select count(*) from <TABLE_NAME> where a is null", "0"),
    )
    assert hooks.checks[0].on("after") == "select sum(a) from after"


def test_headers_and_secrets() -> None:
    hooks = HookOptions.from_options({**URL, f"{C}http.custom.headers": "A:1; B: x:y ;", f"{C}http.api.key": "secret"})
    assert hooks.headers == {"A": "1", "B": "x:y"}
    assert "secret" not in repr(hooks)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({f"{C}on": "true"}, hf.ConfigError, r"http\.url"),
        ({f"{C}on": "true", f"{C}http.url": "ftp://x"}, hf.ConfigError, "ftp"),
        (
            {**URL, f"{C}class": "org.apache.hudi.utilities.callback.kafka.HoodieWriteCommitKafkaCallback"},
            hf.UnsupportedFeatureError,
            r"Kafka.*hudi_fast\.commit\.callback",
        ),
        (
            {**URL, f"{C}class": "org.apache.hudi.utilities.callback.pulsar.HoodieWriteCommitPulsarCallback"},
            hf.UnsupportedFeatureError,
            "Pulsar",
        ),
        ({**URL, f"{C}http.custom.headers": "A"}, hf.ConfigError, "name:value"),
        ({**URL, f"{C}http.timeout.seconds": "0"}, hf.ConfigError, "at least 1"),
        ({V: "com.example.Validator"}, hf.UnsupportedFeatureError, "com.example"),
        ({V: EQUALITY}, hf.ConfigError, r"no queries; set hoodie.*equality"),
        ({V: INEQUALITY, f"{V}.inequality.sql.queries": "select 1"}, hf.ConfigError, "does not name <TABLE_NAME>"),
        ({V: SINGLE, f"{V}.single.value.sql.queries": "select 1 from <TABLE_NAME>"}, hf.ConfigError, "query#value"),
        ({V: EQUALITY, f"{V}.equality.sql.queries": "a from <TABLE_NAME>#1"}, hf.ConfigError, "without #"),
        ({"hudi_fast.commit.callback": "print"}, hf.ConfigError, "not a function"),
        ({"hudi_fast.precommit.validator": 1}, hf.ConfigError, "not a function"),
        ({"hoodie.client.init.callback.classes": "com.example.C"}, hf.UnsupportedFeatureError, "com.example"),
    ],
)
def test_what_is_wrong_is_refused(options: dict[str, Any], error: type[hf.HudiError], text: str) -> None:
    with pytest.raises(error, match=text):
        HookOptions.from_options(options)


def test_a_callback_that_is_off_is_not_checked() -> None:
    assert not HookOptions.from_options({f"{C}class": "com.example.Other"}).http_on
