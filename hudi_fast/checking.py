"""Checks which options and statements of a job hudi_fast honours, before the job moves."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hudi_fast.config.accepted_options import ACCEPTED_PREFIXES
from hudi_fast.config.options import READ, WRITE, find_option, resolve
from hudi_fast.config.words import checked_options
from hudi_fast.errors import ConfigError, HudiError
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.services.inline import check_inline
from hudi_fast.sql_text.coverage import coverage_of
from hudi_fast.values import dataclass
from hudi_fast.writing.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CheckResult", "Finding", "check"]

_SESSION_KEYS = {
    "spark.sql.extensions": "HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "HoodieCatalog",
}
"""Settings that name a class of Apache Hudi, by a part of its name."""

_COLUMNS = ("kind", "name", "verdict", "advice")


@dataclass(frozen=True, slots=True)
class Finding:
    """What hudi_fast does with an option or a statement.

    Attributes:
        kind: ``option``, ``setting`` of a session, or ``statement``.
        name: the key, or the statement.
        verdict: ``honoured``; ``no effect``, where the result is correct without it; ``missed``, an effect that the job
            may miss; ``refused``, an error before anything is written; ``unknown``.
        advice: the reason, and what to do; empty if there is nothing to do.
    """

    kind: str
    name: str
    verdict: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class CheckResult(ShownResult):
    """The findings of a check.

    Attributes:
        findings: one for each option, setting and statement.
    """

    findings: tuple[Finding, ...]

    @property
    def is_ready(self) -> bool:
        """Whether the job runs as it is: nothing is missed, refused or unknown."""
        return all(one.verdict in ("honoured", "no effect") for one in self.findings)

    def to_arrow(self) -> pa.Table:
        """One row for each finding: string columns ``kind``, ``name``, ``verdict``, ``advice``."""
        import pyarrow as pa

        return pa.Table.from_pylist(
            [asdict(one) for one in self.findings], pa.schema([(name, pa.string()) for name in _COLUMNS])
        )


def check(
    options: Mapping[str, Any] | None = None, sql: str | Sequence[str] | None = None, session: Any = None
) -> CheckResult:
    """Tell which options and statements of a job hudi_fast honours. Nothing is read or written.

    Args:
        options: ``hoodie.*`` keys of the job's reads and writes.
        sql: statements, or a script of statements separated by semicolons.
        session: a Spark session whose settings the job uses.

    Raises:
        ConfigError: an argument has another type.

    Example:
        >>> import hudi_fast as hf
        >>> statements = "DELETE FROM t WHERE id = 1; CALL show_file_status('t', file => 'f')"
        >>> found = hf.check({"hoodie.metrics.lock.enable": "true"}, statements)
        >>> for one in found.findings:
        ...     print(one.verdict)
        missed
        honoured
        refused
    """
    options = checked_options(options)
    scripts = [sql] if isinstance(sql, str) else list(sql or ())
    if not all(isinstance(one, str) for one in scripts):
        raise ConfigError("sql is a text, or a list of texts.")
    if session is not None and not hasattr(session, "conf"):
        raise ConfigError(f"session is a Spark session; got {type(session).__name__}.")
    uris = None if session is None else session.conf.get("spark.hadoop.hive.metastore.uris", None)
    metastore = {} if uris is None else {"hoodie.datasource.hive_sync.metastore.uris": uris}
    findings = [*_options(dict(options or {}), metastore), *_session(session)]
    findings += [one for script in scripts for one in _statements(script)]
    return CheckResult(tuple(findings))


def _options(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[Finding]:
    found = [_option("option", key, value) for key, value in options.items()]
    yield from found
    if found and all(one.verdict not in ("refused", "unknown") for one in found):  # the options together
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check_inline(Settings.for_write({**defaults, **options}))
        except HudiError as error:
            yield Finding("option", "all options together", "refused", str(error))


def _option(kind: str, key: str, value: Any) -> Finding:
    option = find_option(key)
    if option is None:
        reason = next((reason for prefix, reason in ACCEPTED_PREFIXES if key.startswith(prefix)), None)
        if reason is not None:
            return Finding(kind, key, "no effect", reason)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for family in (WRITE[0], READ[0]) if option is None else option.families:
                resolve({key: value}, family)
    except HudiError as error:
        return Finding(kind, key, "refused", str(error))
    if option is None:
        return Finding(kind, key, "unknown", str(caught[0].message) if caught else "Apache Hudi has no such option.")
    if option.honoured:
        return Finding(kind, key, "honoured")
    return Finding(kind, key, "missed" if caught else "no effect", option.loss if caught else option.doc)


def _session(session: Any) -> Iterator[Finding]:
    if session is None:
        return
    for key, name in _SESSION_KEYS.items():
        if name in (session.conf.get(key, None) or ""):
            yield Finding("setting", key, "no effect", "hudi_fast does not need it; it does no harm.")
    rows = session.sql("SET").collect()
    named = {(row[0].removeprefix("spark."), row[1]) for row in rows}
    for key, value in sorted(named):
        if key.startswith("hoodie."):
            yield _option("setting", key, value)


def _statements(script: str) -> Iterator[Finding]:
    for one in coverage_of(script):
        if one.setting is not None and one.setting[0].startswith("hoodie."):
            found = _option("statement", *one.setting)
            yield Finding("statement", one.text, found.verdict, found.advice)
        elif not one.is_known:
            yield Finding("statement", one.text, "unknown", "This is not a SQL statement.")
        else:
            yield Finding("statement", one.text, "refused" if one.refusal else "honoured", one.refusal)
