"""Options of hooks: commit callbacks, and validators of a commit.

Sources: ``HoodieWriteCommitCallbackConfig``, ``HoodiePreCommitValidatorConfig`` (1.2.0).
"""

from __future__ import annotations

from hudi_fast.config.option_descriptor import Kind, Option

__all__ = ["HOOK_OPTIONS", "HTTP_CALLBACK", "VALIDATOR_CLASSES"]

_C = "hoodie.write.commit.callback."
_V = "hoodie.precommit.validators"

HTTP_CALLBACK = "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback"
"""Apache Hudi's class of the callback over HTTP."""

_PACKAGE = "org.apache.hudi.client.validator."
VALIDATOR_CLASSES = {
    f"{_PACKAGE}SqlQueryEqualityPreCommitValidator": "equality",
    f"{_PACKAGE}SqlQueryInequalityPreCommitValidator": "inequality",
    f"{_PACKAGE}SqlQuerySingleResultPreCommitValidator": "single",
}
"""Apache Hudi's validator classes, and what they compare."""

HOOK_OPTIONS = (
    Option(f"{_C}on", Kind.BOOL, False, "Call a service over HTTP after a commit, see [monitoring](monitoring.md)."),
    Option(f"{_C}class", Kind.TEXT, HTTP_CALLBACK, "Kind of the callback; only this one is supported."),
    Option(f"{_C}http.url", Kind.TEXT, None, "Address of the service."),
    Option(
        f"{_C}http.api.key", Kind.TEXT, "hudi_write_commit_http_callback", "Value of the header `HUDI-CALLBACK-KEY`."
    ),
    Option(f"{_C}http.timeout.seconds", Kind.INT, 30, "Longest wait for the service.", unit="seconds", minimum=1),
    Option(f"{_C}http.custom.headers", Kind.TEXT, "", "More headers, `name:value;name:value`."),
    Option(
        "hudi_fast.commit.callback",
        Kind.FUNCTION,
        None,
        "Python function of the `WriteResult`, called after a commit and the services after it.",
    ),
    Option(
        _V,
        Kind.LIST,
        (),
        "Validators of a commit, by the names of Apache Hudi's classes.",
        supported=tuple(VALIDATOR_CLASSES),
    ),
    Option(
        f"{_V}.equality.sql.queries",
        Kind.TEXT,
        "",
        "Queries whose rows must be the same before and after the commit, separated by `;`. `<TABLE_NAME>` is the "
        "table.",
    ),
    Option(f"{_V}.inequality.sql.queries", Kind.TEXT, "", "Queries whose rows must differ, separated by `;`."),
    Option(
        f"{_V}.single.value.sql.queries",
        Kind.TEXT,
        "",
        "Queries with one value after the commit, and that value: `query#value;query#value`.",
    ),
    Option(
        f"{_V}.failure.policy",
        Kind.ENUM,
        "FAIL",
        "Apache Hudi uses it for the validators of its streamer; a failed SQL validator always fails the commit.",
        choices=("FAIL", "WARN_LOG"),
        honoured=False,
    ),
    Option(
        "hudi_fast.precommit.validator",
        Kind.FUNCTION,
        None,
        "Python function of two `pyarrow.dataset` scans, the table before and after the commit. It raises an error to "
        "refuse the commit.",
    ),
)
"""Options of hooks."""
