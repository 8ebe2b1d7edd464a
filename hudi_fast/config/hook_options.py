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

from hudi_fast.config.option_descriptor import Kind, Option
from hudi_fast.config.option_fields import (
    OptionValues,
    normalise_fields,
    option,
    options_of,
)
from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["HOOK_OPTIONS", "HTTP_CALLBACK", "VALIDATOR_CLASSES", "HookOptions", "SqlCheck"]

HTTP_CALLBACK = "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback"
"""Apache Hudi's class of the callback over HTTP."""
_PACKAGE = "org.apache.hudi.client.validator."
VALIDATOR_CLASSES = {
    f"{_PACKAGE}SqlQueryEqualityPreCommitValidator": "equality",
    f"{_PACKAGE}SqlQueryInequalityPreCommitValidator": "inequality",
    f"{_PACKAGE}SqlQuerySingleResultPreCommitValidator": "single",
}
"""Apache Hudi's validator classes, and what they compare."""

_C = "hoodie.write.commit.callback."
_V = "hoodie.precommit.validators"
_TABLE = "<TABLE_NAME>"
_QUERIES = {
    "equality": f"{_V}.equality.sql.queries",
    "inequality": f"{_V}.inequality.sql.queries",
    "single": f"{_V}.single.value.sql.queries",
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

    http_on: bool = option(
        f"{_C}on", Kind.BOOL, False, "Call a service over HTTP after a commit, see [monitoring](monitoring.md)."
    )
    callback_class: str = option(
        f"{_C}class", Kind.TEXT, HTTP_CALLBACK, "Kind of the callback; only this one is supported."
    )
    url: str | None = option(f"{_C}http.url", Kind.TEXT, None, "Address of the service.")
    api_key: str = option(
        f"{_C}http.api.key",
        Kind.TEXT,
        "hudi_write_commit_http_callback",
        "Value of the header `HUDI-CALLBACK-KEY`.",
        secret=True,
    )
    timeout_seconds: int = option(
        f"{_C}http.timeout.seconds", Kind.INT, 30, "Longest wait for the service.", unit="seconds", minimum=1
    )
    header_text: str = option(
        f"{_C}http.custom.headers", Kind.TEXT, "", "More headers, `name:value;name:value`.", secret=True
    )
    callback: Any = option(  # noqa: RUF009 - a function, or None
        "hudi_fast.commit.callback",
        Kind.FUNCTION,
        None,
        "Python function of the `WriteResult`, called after a commit and the services after it.",
    )
    validators: tuple[str, ...] = option(
        _V,
        Kind.LIST,
        (),
        "Validators of a commit, by the names of Apache Hudi's classes.",
        supported=tuple(VALIDATOR_CLASSES),
    )
    equality_queries: str = option(
        f"{_V}.equality.sql.queries",
        Kind.TEXT,
        "",
        "Queries whose rows must be the same before and after the commit, separated by `;`. `<TABLE_NAME>` is the "
        "table.",
    )
    inequality_queries: str = option(
        f"{_V}.inequality.sql.queries", Kind.TEXT, "", "Queries whose rows must differ, separated by `;`."
    )
    single_queries: str = option(
        f"{_V}.single.value.sql.queries",
        Kind.TEXT,
        "",
        "Queries with one value after the commit, and that value: `query#value;query#value`.",
    )
    validator: Any = option(  # noqa: RUF009 - a function, or None
        "hudi_fast.precommit.validator",
        Kind.FUNCTION,
        None,
        "Python function of two `pyarrow.dataset` scans, the table before and after the commit. It raises an error to "
        "refuse the commit.",
    )

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


HOOK_OPTIONS = (
    *options_of(HookOptions),
    Option(
        f"{_V}.failure.policy",
        Kind.ENUM,
        "FAIL",
        "Apache Hudi uses it for the validators of its streamer; a failed SQL validator always fails the commit.",
        choices=("FAIL", "WARN_LOG"),
        honoured=False,
    ),
)
"""Options of hooks."""
