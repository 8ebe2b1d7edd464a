"""OpenTelemetry spans: one for each phase, nested as the phases are.

Spans exist where the application has imported ``opentelemetry.trace``: without that there is no tracer provider. So
hudi_fast does not import it, and needs no package.
"""

from __future__ import annotations

import sys
from typing import Any

from hudi_fast.events import Completed, Phase

__all__ = ["SPANS", "spans_are_wanted"]

_MODULE = "opentelemetry.trace"


def spans_are_wanted() -> bool:
    """Whether the application uses OpenTelemetry."""
    return _MODULE in sys.modules


class _Spans:
    """A listener that makes spans."""

    def begun(self, phase: Phase) -> None:
        """Start a span, and make it the current one."""
        trace: Any = sys.modules[_MODULE]
        manager = trace.get_tracer("hudi_fast").start_as_current_span(
            f"hudi_fast.{phase.name}", record_exception=False, set_status_on_exception=False
        )
        phase.attached = (manager, manager.__enter__())

    def advanced(self, phase: Phase) -> None:
        """Nothing to do."""

    def ended(self, phase: Phase) -> None:
        """End the span, with the figures of the phase."""
        if phase.attached is None:
            return
        manager, span = phase.attached
        trace: Any = sys.modules[_MODULE]
        for name, value in phase.fields().items():
            span.set_attribute(f"hudi_fast.{name}", value)
        if phase.error is not None:
            span.set_status(trace.Status(trace.StatusCode.ERROR, type(phase.error).__name__))
        manager.__exit__(None, None, None)

    def completed(self, done: Completed) -> None:
        """Nothing to do."""


SPANS = _Spans()
"""The one listener for spans."""
