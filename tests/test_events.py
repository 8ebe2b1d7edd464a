"""Phases and completed actions: what logs and listeners get, and what it costs when nobody listens."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.events import Completed, Phase, completed, listening, logger_of, note, phase, without_secrets
from hudi_fast.storage.base import Storage
from tests.support.small_tables import options, plain_rows

OPTIONAL = {"prometheus_client", "tqdm", "opentelemetry"}


class Heard:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []
        self.done: list[Completed] = []

    def begun(self, phase: Phase) -> None:
        self.said.append(("begun", phase.name))

    def advanced(self, phase: Phase) -> None:
        self.said.append(("advanced", f"{phase.name} {phase.done}/{phase.total}"))

    def ended(self, phase: Phase) -> None:
        self.said.append(("failed" if phase.error else "ended", phase.name))

    def completed(self, done: Completed) -> None:
        self.done.append(done)


def test_phases_in_a_phase_belong_to_its_table_and_listeners() -> None:
    heard = Heard()
    with phase("outer", "writing", "/t", "1", listeners=(heard,)), phase("inner") as inner:
        assert (inner.table, inner.instant, inner.area) == ("/t", "1", "writing")
        assert [inner.counting(lambda number: number * 2, 2, "files")(one) for one in (3, 4)] == [6, 8]
        completed(Completed(action="clean", instant="1", seconds=0.1))
    names = [("begun", "outer"), ("begun", "inner"), ("advanced", "inner 1/2"), ("advanced", "inner 2/2")]
    assert heard.said == [*names, ("ended", "inner"), ("ended", "outer")]
    assert [one.action for one in heard.done] == ["clean"]


def test_an_error_ends_a_phase_and_is_the_callers() -> None:
    heard = Heard()
    with listening(heard), pytest.raises(KeyError), phase("outer"):
        raise KeyError("no")
    assert heard.said == [("begun", "outer"), ("failed", "outer")]


def test_a_listener_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Heard):
        def begun(self, phase: Phase) -> None:
            raise RuntimeError("s3://key:secret@bucket is gone")

    with caplog.at_level(logging.WARNING, "hudi_fast"), listening(Broken()), phase("outer"):
        pass
    assert "A listener failed" in caplog.text
    assert "secret" not in caplog.text


def test_a_write_logs_its_phases_with_fields(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "hudi_fast"):
        result = hf.write(plain_rows(range(4)), tmp_path, options())
    records = {record.phase: record for record in caplog.records if hasattr(record, "phase")}
    assert {"lock", "prepare", "begin", "assign", "write_files", "publish", "record_in_metadata", "write"} <= {*records}
    written = records["write"]
    assert (written.name, written.levelname) == ("hudi_fast.writing", "INFO")
    assert (written.table, written.instant) == (Storage(tmp_path).uri, result.instant)
    assert (written.rows, written.files, written.operation) == (4, result.files_written, "upsert")
    assert 0 < records["write_files"].seconds < written.seconds
    assert written.getMessage().startswith(f"write of {written.table}, instant {result.instant}, took ")
    assert records["lock"].name == "hudi_fast.locking"


def test_a_failed_write_logs_its_rollback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf.write(plain_rows(range(4)), tmp_path, options())

    def refuse(*_: object) -> None:
        raise OSError("no answer from https://store/x?sig=abc")

    monkeypatch.setattr("hudi_fast.writing.flow.record_in_metadata", refuse)
    with caplog.at_level(logging.INFO, "hudi_fast"), pytest.raises(hf.CommitError):
        hf.write(plain_rows(range(4)), tmp_path, options())
    (failed,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "failed and is rolled back: OSError: no answer from https://store/x?sig=***" in failed.getMessage()
    (rollback,) = [record for record in caplog.records if getattr(record, "phase", "") == "rollback"]
    assert rollback.of == failed.instant


@pytest.mark.slow
def test_nothing_is_printed_unless_logging_is_configured(tmp_path: Path) -> None:
    code = f"""
import pyarrow as pa, hudi_fast as hf, sys
hf.write(pa.table({{"id": ["a"]}}), {str(tmp_path)!r}, {{"hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id"}})
hf.HudiTable.open({str(tmp_path)!r}).to_arrow()
from hudi_fast.events import note
note("locking", 40, "an error")
print(sorted({{name.partition('.')[0] for name in sys.modules}} & {OPTIONAL!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_logging_off_costs_less_than_a_hundredth_of_a_small_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        hf.write(plain_rows(range(4)), tmp_path, options())
    begun, entered = [], Phase.__enter__
    monkeypatch.setattr(Phase, "__enter__", lambda self: begun.append(self.name) or entered(self))
    monkeypatch.setattr(Phase, "fields", lambda self: pytest.fail("a record was made"))
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)  # of other tests
    hf.write(plain_rows(range(4)), tmp_path, options())
    monkeypatch.undo()
    assert len(begun) < 25

    def took(times: int) -> float:
        started = time.process_time()
        for _ in range(times):
            with phase("one", "writing", "/t", rows=1):
                pass
        return time.process_time() - started

    started = time.process_time()
    hf.write(plain_rows(range(4)), tmp_path, options())
    write = time.process_time() - started
    assert min(took(100) for _ in range(5)) / 100 * len(begun) < write / 100


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("abfss://container@account/x", "abfss://container@account/x"),
        ("https://user:pass@host/x", "https://***@host/x"),
        ("https://h/x?a=1&sig=abc&b=2", "https://h/x?a=1&sig=***&b=2"),
        ("https://h/x?X-Amz-Signature=abc", "https://h/x?X-Amz-Signature=***"),
        ("AccountKey=abc;x=1", "AccountKey=***;x=1"),
        ("s3://bucket/table", "s3://bucket/table"),
    ],
)
def test_secrets_are_hidden(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_a_note_formats_only_for_an_enabled_logger(caplog: pytest.LogCaptureFixture) -> None:
    class Loud:
        def __str__(self) -> str:
            pytest.fail("it was formatted")

    note("locking", logging.DEBUG, "%s", Loud())
    with caplog.at_level(logging.INFO, "hudi_fast.locking"):
        note("locking", logging.INFO, "%s of %d", "one", 2, table="/t", instant="3", attempt=4)
    (record,) = caplog.records
    assert (record.getMessage(), record.table, record.instant, record.attempt) == ("one of 2", "/t", "3", 4)
    assert logger_of("locking").name == "hudi_fast.locking"
