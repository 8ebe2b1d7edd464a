"""Progress bars of long work in this process, or calls of a function.

::

    with hf.progress():              one bar for each phase that counts its units, by tqdm: terminals and notebooks
    with hf.progress(function):      function(phase, done, total, unit)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hudi_fast.errors import ConfigError
from hudi_fast.events import Completed, Phase, listening
from hudi_fast.storage.extras import import_extra

__all__ = ["progress"]

Report = Callable[[str, int, int, str], Any]


@contextmanager
def progress(report: Report | None = None) -> Iterator[None]:
    """Show the progress of reads, writes and table services that run in this process during the block.

    Off by default. Work on Spark shows in Spark's own progress bar and user interface.

    Args:
        report: called with the name of the phase, the number of units done, the total number of units, and their name;
            from any thread. None for progress bars, which need the extra ``progress``.

    Raises:
        ConfigError: ``report`` is not a function, or tqdm is not installed.

    Example:
        >>> import pyarrow as pa, tempfile, hudi_fast as hf
        >>> options = {"hoodie.table.name": "trips", "hoodie.datasource.write.recordkey.field": "id"}
        >>> with hf.progress(lambda phase, done, total, unit: print(phase, done, total, unit)):
        ...     result = hf.write(pa.table({"id": [1]}), tempfile.mkdtemp() + "/trips", options)
        write_files 1 1 file groups
    """
    if report is not None and not callable(report):
        raise ConfigError(f"progress takes a function of phase, done, total and unit; got {report!r}.")
    listener = _Bars() if report is None else _Calls(report)
    with listening(listener):
        yield


class _Calls:
    """Calls a function for each unit."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def begun(self, phase: Phase) -> None:
        """Nothing to do."""

    def advanced(self, phase: Phase) -> None:
        """Call the function."""
        self._report(phase.name, phase.done, phase.total, phase.unit)

    def ended(self, phase: Phase) -> None:
        """Nothing to do."""

    def completed(self, done: Completed) -> None:
        """Nothing to do."""


class _Bars:
    """Draws a bar for each phase with at least two units."""

    def __init__(self) -> None:
        self._tqdm = import_extra("tqdm.auto", "progress", "A progress bar").tqdm
        self._bars: dict[int, Any] = {}

    def begun(self, phase: Phase) -> None:
        """Nothing to do: the number of units is not known yet."""

    def advanced(self, phase: Phase) -> None:
        """Draw the bar."""
        if phase.total < 2:
            return
        bar = self._bars.get(id(phase))
        if bar is None:
            made = self._tqdm(total=phase.total, unit=f" {phase.unit}", desc=phase.name.replace("_", " "), leave=False)
            bar = self._bars.setdefault(id(phase), made)
        bar.update(1)

    def ended(self, phase: Phase) -> None:
        """Remove the bar."""
        bar = self._bars.pop(id(phase), None)
        if bar is not None:
            bar.close()

    def completed(self, done: Completed) -> None:
        """Nothing to do."""
