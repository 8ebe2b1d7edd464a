"""Descriptions of Spark jobs: the Spark UI shows which phase of which table and instant a job belongs to.

On classic Spark a phase sets ``spark.job.description`` of its thread. The caller's job group stays, because the group
is what the caller or a streaming query cancels; the caller's own description returns when the call ends. Spark Connect
has no descriptions of jobs, but tags, which its UI lists.
"""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from typing import Any

from hudi_fast.events import Completed, Phase, without_secrets

__all__ = ["JobDescriptions"]

_PROPERTY = "spark.job.description"
_NOT_IN_TAGS = re.compile(r"[,\s]+")


class JobDescriptions:
    """A listener that describes the jobs of each phase.

    Args:
        spark: the session.
    """

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._context = getattr(spark, "_sc", None)
        self._thread = threading.local()

    def begun(self, phase: Phase) -> None:
        """Describe the jobs of a phase."""
        text = f"hudi_fast: {phase.name} {without_secrets(phase.table)} {phase.instant}".strip()
        texts = self._thread.__dict__.setdefault("texts", [])
        if not texts and self._context is not None:
            self._thread.callers = self._context.getLocalProperty(_PROPERTY)
        texts.append(text)
        if self._context is None:
            self._tag("addTag", text)
        else:
            self._context.setLocalProperty(_PROPERTY, text)

    def advanced(self, phase: Phase) -> None:
        """Nothing to do."""

    def ended(self, phase: Phase) -> None:
        """Return to the description of the phase around it, or to the caller's."""
        texts = self._thread.texts
        text = texts.pop()
        if self._context is None:
            self._tag("removeTag", text)
        else:
            self._context.setLocalProperty(_PROPERTY, texts[-1] if texts else self._thread.callers)

    def completed(self, done: Completed) -> None:
        """Nothing to do."""

    def _tag(self, method: str, text: str) -> None:
        with suppress(AttributeError):  # a session without tags
            getattr(self._spark, method)(_NOT_IN_TAGS.sub(" ", text).replace(" ", "_"))
