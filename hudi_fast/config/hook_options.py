"""The options of hooks as one frozen value.

::

    {"hoodie.write.commit.callback...": ..., "hoodie.precommit.validators...": ...} ─► HookOptions
        ─► hudi_fast.monitoring.callbacks    after a commit
        ─► hudi_fast.writing.validators      before a commit
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_fast.config.catalog.hooks import HTTP_CALLBACK, VALIDATOR_CLASSES
from hudi_fast.config.option_fields import normalise_fields, option_field
from hudi_fast.config.option_values import OptionValues
from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["HookOptions", "SqlCheck"]

_C = "hoodie.write.commit.callback."
_V = "hoodie.precommit.validators."
_TABLE = "<TABLE_NAME>"
_QUERIES = {
    "equality": f"{_V}equality.sql.queries",
    "inequality": f"{_V}inequality.sql.queries",
    "single": f"{_V}single.value.sql.queries",
}


@dataclass(frozen=True, slots=True)
class SqlCheck:
    """One query of a validator.

    Attributes:
        validator: Apache Hudi's class.
        kind: ``equality``, ``inequality`` or ``single``.
        query: the query; ``<TABLE_NAME>`` stands for the table.
        expected: the expected value, as text, of ``single``.
    """

    validator: str
    kind: str
    query: str
    expected: str = ""

    def on(self, name: str) -> str:
        """The query on a table of that name."""
        return self.query.replace(_TABLE, name)


@dataclass(frozen=True, slots=True, repr=False)
class HookOptions(OptionValues):
    """The hooks that are called before and after a commit."""

    http_on: bool = option_field(f"{_C}on")
    callback_class: str = option_field(f"{_C}class")
    url: str | None = option_field(f"{_C}http.url")
    api_key: str = option_field(f"{_C}http.api.key", secret=True)
    timeout_seconds: int = option_field(f"{_C}http.timeout.seconds")
    header_text: str = option_field(f"{_C}http.custom.headers", secret=True)
    callback: Any = option_field("hudi_fast.commit.callback")  # noqa: RUF009 - a function, or None
    validators: tuple[str, ...] = option_field("hoodie.precommit.validators")
    equality_queries: str = option_field(_QUERIES["equality"])
    inequality_queries: str = option_field(_QUERIES["inequality"])
    single_queries: str = option_field(_QUERIES["single"])
    validator: Any = option_field("hudi_fast.precommit.validator")  # noqa: RUF009 - a function, or None

    def __post_init__(self) -> None:
        normalise_fields(self)
        if self.http_on:
            if self.callback_class != HTTP_CALLBACK:
                raise UnsupportedFeatureError(
                    f"{_C}class={self.callback_class} is not supported; supported: {HTTP_CALLBACK}. To send to Kafka, "
                    "Pulsar or elsewhere, give a Python function as hudi_fast.commit.callback."
                )
            if not self.url or not self.url.startswith(("http://", "https://")):
                raise ConfigError(f"{_C}on=true needs {_C}http.url, an http:// or https:// address; got {self.url!r}.")
        _ = self.headers, self.checks

    @property
    def headers(self) -> Mapping[str, str]:
        """More headers of the callback.

        Raises:
            ConfigError: one is not ``name:value``.
        """
        found = {}
        for one in filter(None, (part.strip() for part in self.header_text.split(";"))):
            name, colon, value = (part.strip() for part in one.partition(":"))
            if not colon or not name or not value:
                raise ConfigError(f"{_C}http.custom.headers has the entry {name!r}; expected name:value;name:value.")
            found[name] = value
        return found

    @property
    def checks(self) -> tuple[SqlCheck, ...]:
        """The queries of the validators.

        Raises:
            ConfigError: a validator has no queries, or one has a wrong form.
        """
        texts = {
            "equality": self.equality_queries,
            "inequality": self.inequality_queries,
            "single": self.single_queries,
        }
        found = []
        for validator in self.validators:
            kind = VALIDATOR_CLASSES[validator]
            queries = [one.strip() for one in texts[kind].split(";") if one.strip()]
            if not queries:
                raise ConfigError(f"The validator {validator} has no queries; set {_QUERIES[kind]}.")
            found += [_check(validator, kind, one) for one in queries]
        return tuple(found)

    @property
    def validates(self) -> bool:
        """Whether anything is called before a commit."""
        return bool(self.validators) or self.validator is not None


def _check(validator: str, kind: str, text: str) -> SqlCheck:
    query, mark, expected = text.partition("#")
    if (kind == "single") != bool(mark) or "#" in expected:
        form = "query#value" if kind == "single" else "a query without #"
        raise ConfigError(f"{_QUERIES[kind]} has the entry {text!r}; expected {form}.")
    if _TABLE not in query:
        raise ConfigError(f"{_QUERIES[kind]} has the query {query!r}, which does not name {_TABLE}.")
    return SqlCheck(validator, kind, query.strip(), expected.strip())
