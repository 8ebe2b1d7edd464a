"""OpenTelemetry spans of the phases, with OpenTelemetry's own tracer.

Module: hudi_fast.monitoring.metrics.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import json, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
import pyarrow as pa, hudi_fast as hf

kept, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
with trace.get_tracer("app").start_as_current_span("job"):
    result = hf.write(pa.table({"id": ["a", "b"]}), sys.argv[1], options)
    try:
        hf.write(pa.table({"id": [None]}), sys.argv[1], options)
    except hf.HudiError:
        pass
names = {span.context.span_id: span.name for span in kept.get_finished_spans()}
print(json.dumps([result.instant, [
    [span.name, span.parent and names.get(span.parent.span_id), dict(span.attributes), span.status.status_code.name]
    for span in kept.get_finished_spans()]]))
"""


@pytest.mark.slow
def test_each_phase_is_a_span_within_the_applications(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "t")]
    instant, spans = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    first: dict[str, list[object]] = {}
    for name, parent, attributes, status in spans:
        first.setdefault(name, [parent, attributes, status])
    assert [first[f"hudi_fast.{name}"][0] for name in ("call", "write", "execute", "write_files")] == [
        "job",
        "hudi_fast.call",
        "hudi_fast.write",
        "hudi_fast.execute",
    ]
    written = first["hudi_fast.write"][1]
    assert isinstance(written, dict)
    assert (written["hudi_fast.instant"], written["hudi_fast.rows"]) == (instant, 2)
    assert written["hudi_fast.seconds"] > 0
    failed = [name for name, _, _, status in spans if status == "ERROR"]
    assert failed == ["hudi_fast.prepare", "hudi_fast.write", "hudi_fast.call"]
