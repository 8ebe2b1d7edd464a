"""Plot of a table: its instants over time, and the sizes of its file groups.

::

    history ─► one lane per kind of action, a bar from requested to completion time; pending instants hatched
    files   ─► number of file groups per size, by partition: the largest partitions, the others together

Only this module imports matplotlib, which is the extra ``plot``. It does not use matplotlib's global state, so the
caller's own figures are not affected.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from hudi_fast.errors import ConfigError, CorruptTableError
from hudi_fast.reading.inspecting.words import size_text
from hudi_fast.timeline.instants import ms_from_instant
from hudi_fast.values import dataclass

__all__ = ["PICTURE_FORMATS", "Bar", "bars_of", "draw_history", "require_picture", "size_bins"]

PICTURE_FORMATS = ("png", "svg", "pdf")
"""File name suffixes of pictures."""

_OPERATIONS = {"COMPACT": "compaction", "LOG_COMPACT": "log compaction", "CLUSTER": "clustering"}
_ACTIONS = {"logcompaction": "log compaction", "deltacommit": "delta commit", "replacecommit": "replace commit"}
# Colours that are distinguishable with any kind of colour vision and in greyscale.
_COLOURS = {
    "commit": "#0072B2",
    "delta commit": "#0072B2",
    "replace commit": "#56B4E9",
    "compaction": "#009E73",
    "log compaction": "#66C2A5",
    "clustering": "#E69F00",
    "clean": "#7F7F7F",
    "rollback": "#D55E00",
    "restore": "#A01010",
    "savepoint": "#CC79A7",
    "indexing": "#8C6BB1",
}
_OTHER = "#BBBBBB"
_PARTITION_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
_PARTITIONS = 6
_NARROWEST = 1 / 160
_BINS = 24
_FEWEST_BINS = 6
_SHORT = timedelta(seconds=8)
_WIDTH_INCHES = 11.0
_LABEL_LETTERS = 40
_DOTS_PER_INCH = 150


@dataclass(frozen=True, slots=True)
class Bar:
    """One instant in the plot.

    Attributes:
        lane: kind of action.
        begun: requested time, for a savepoint the completion time; in UTC or local time, without zone.
        done: completion time; None while pending.
    """

    lane: str
    begun: datetime
    done: datetime | None


def require_picture(path: str) -> None:
    """Check that a picture can be drawn to a file.

    Raises:
        ConfigError: the ending is not one of :data:`PICTURE_FORMATS`, or the extra ``plot`` is not installed.
    """
    if os.path.splitext(path)[1].lstrip(".").lower() not in PICTURE_FORMATS:
        known = ", ".join(f".{name}" for name in PICTURE_FORMATS)
        raise ConfigError(f"{path}: expected a file name that ends with one of {known}.")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            "Plots need matplotlib, which is not installed. Install the extra `plot`: pip install 'hudi-fast[plot]'."
        ) from error


def bars_of(history: pa.Table, zone: str) -> list[Bar]:
    """Bars of the instants whose time is a date, oldest first.

    Args:
        history: result of :meth:`hudi_fast.HudiTable.history`.
        zone: time zone of the timeline, ``LOCAL`` or ``UTC``.
    """
    bars = []
    for row in history.to_pylist():
        begun = _moment(row["instant"], zone)
        if begun is None:
            continue
        if row["action"] == "savepoint":  # its requested time is that of its commit, which may be much older
            begun = _moment(row["completion"] or row["instant"], zone) or begun
        # Completion times of version 6 tables are modification times, which are too new if the table was copied.
        took = timedelta(milliseconds=row["duration_ms"] or 0)
        done = begun + took if row["state"] == "COMPLETED" else None
        action = row["action"]
        lane = _OPERATIONS.get(row["operation"] or "", _ACTIONS.get(action, action))
        bars.append(Bar(lane, begun, done))
    return bars


def size_bins(sizes: Iterable[int]) -> list[float]:
    """Bin edges for sizes: powers of two; the first edge is 0 if there are empty files."""
    known = list(sizes)
    positive = [size for size in known if size > 0]
    if not positive:
        return [0.0, 1.0]
    low, high = math.floor(math.log2(min(positive))), math.floor(math.log2(max(positive))) + 1
    step = max(1, math.ceil((high - low) / _BINS))
    edges = [float(2**exponent) for exponent in range(low, high + step, step)]
    return [0.0, *edges] if len(positive) < len(known) else edges


def draw_history(path: str, name: str, history: pa.Table, files: pa.Table, zone: str) -> None:
    """Plot a table to a file.

    Args:
        path: output file; its ending, one of :data:`PICTURE_FORMATS`, is the format.
        name: table name.
        history: result of :meth:`hudi_fast.HudiTable.history`.
        files: result of :meth:`hudi_fast.HudiTable.files`.
        zone: time zone of the timeline, ``LOCAL`` or ``UTC``.

    Raises:
        ConfigError: the extra ``plot`` is not installed.
    """
    require_picture(path)
    from matplotlib.figure import Figure

    bars = bars_of(history, zone)
    lanes = _lanes(bars)
    tall = 0.9 + 0.42 * max(len(lanes), 1)
    figure = Figure(figsize=(_WIDTH_INCHES, tall + 4.1), layout="constrained", dpi=_DOTS_PER_INCH)
    figure.suptitle(_plain(name), fontsize=13, fontweight="bold", x=0.01, ha="left")
    above, below = figure.subplots(2, 1, height_ratios=[tall, 3.2])
    _draw_bars(above, bars, lanes, zone)
    _draw_sizes(below, files)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Glyph", UserWarning
        )  # matplotlib draws a box for a glyph that the font lacks
        figure.savefig(path)


# ---- the timeline


def _lanes(bars: Sequence[Bar]) -> list[str]:
    """Kinds of actions in the plot, in the order of the colours: writes first, then services."""
    known = list(_COLOURS)
    return sorted(
        {bar.lane for bar in bars}, key=lambda lane: (known.index(lane) if lane in known else len(known), lane)
    )


def _draw_bars(axes: Any, bars: Sequence[Bar], lanes: Sequence[str], zone: str) -> None:
    axes.set_title(_timeline_title(bars), loc="left", fontsize=10)
    axes.set_yticks(range(len(lanes)), labels=lanes)
    axes.set_ylim(max(len(lanes), 1) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    _unframe(axes)
    if not bars:
        axes.set_xticks([])
        axes.text(0.5, 0.5, "no instants", ha="center", va="center", transform=axes.transAxes, color="0.4")
        return
    from matplotlib.dates import AutoDateLocator, date2num, num2date
    from matplotlib.ticker import FuncFormatter

    oldest, newest = min(bar.begun for bar in bars), max(bar.done or bar.begun for bar in bars)
    first, last = date2num(oldest), date2num(newest)
    span = max(last - first, 1 / 86_400)
    left, right = first - 0.02 * span, last + 0.04 * span
    for bar in bars:
        begun = date2num(bar.begun)
        width = max((right if bar.done is None else date2num(bar.done)) - begun, _NARROWEST * (right - left))
        _draw_bar(axes, bar, lanes.index(bar.lane), begun, width)
    axes.set_xlim(left, right)
    longest = newest - oldest
    axes.xaxis.set_major_locator(AutoDateLocator(minticks=4, maxticks=6 if longest < _SHORT else 15))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: _tick_text(num2date(at), longest)))
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel(_period(oldest, newest) + (" (UTC)" if zone == "UTC" else ""), fontsize=9)


def _tick_text(moment: datetime, span: timedelta) -> str:
    """Label of a moment on the axis; its precision depends on the length of the axis."""
    if span < _SHORT:
        return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}"
    if span < timedelta(minutes=10):
        return f"{moment:%H:%M:%S}"
    if span < timedelta(hours=36):
        return f"{moment:%H:%M}"
    return f"{moment:%d %b}" if span < timedelta(days=300) else f"{moment:%Y-%m}"


def _period(oldest: datetime, newest: datetime) -> str:
    begun, done = f"{oldest:%Y-%m-%d %H:%M:%S}", f"{newest:%Y-%m-%d %H:%M:%S}"
    return begun if begun == done else f"{begun} to {done}"


def _draw_bar(axes: Any, bar: Bar, lane: int, begun: float, width: float) -> None:
    colour = _COLOURS.get(bar.lane, _OTHER)
    if bar.done is None:
        axes.barh(lane, width, left=begun, height=0.56, facecolor="white", edgecolor=colour, hatch="////", linewidth=1)
    else:
        axes.barh(lane, width, left=begun, height=0.56, facecolor=colour, linewidth=0, alpha=0.85)


def _timeline_title(bars: Sequence[Bar]) -> str:
    pending = sum(bar.done is None for bar in bars)
    return f"Instants: {len(bars):,}" + (f", {pending:,} of them pending (hatched)" if pending else "")


def _moment(time: str, zone: str) -> datetime | None:
    if time.startswith("0000"):
        return None
    try:
        moment = datetime.fromtimestamp(ms_from_instant(time, zone) / 1000, UTC)
    except (CorruptTableError, OverflowError, OSError):
        return None
    # The plot shows times in the zone of the timeline.
    return moment.replace(tzinfo=None) if zone == "UTC" else moment.astimezone().replace(tzinfo=None)


# ---- sizes


def _draw_sizes(axes: Any, files: pa.Table) -> None:
    sizes = files.column("bytes").to_pylist()
    axes.set_title(f"File groups by size: {len(sizes):,}, {size_text(sum(sizes))}", loc="left", fontsize=10)
    _unframe(axes)
    if not sizes:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no files", ha="center", va="center", transform=axes.transAxes, color="0.4")
        return
    groups = _by_partition(files.column("partition").to_pylist(), sizes)
    edges = _with_room(size_bins(sizes))
    bottom = [0] * (len(edges) - 1)
    handles, labels = [], []
    for at, (label, members) in enumerate(groups):
        counts = _counts(members, edges)
        colour = _OTHER if label is None else _PARTITION_COLOURS[at % len(_PARTITION_COLOURS)]
        handles.append(
            axes.bar(range(len(counts)), counts, 0.86, bottom, color=colour, edgecolor="white", linewidth=0.5)
        )
        labels.append(_label(label, members, len(set(files.column("partition").to_pylist())) - _PARTITIONS))
        bottom = [low + count for low, count in zip(bottom, counts, strict=True)]
    axes.set_xticks([at - 0.5 for at in range(len(edges))], labels=[_edge_text(edge) for edge in edges])
    axes.tick_params(axis="x", labelrotation=30 if len(edges) > 12 else 0, labelsize=8)
    axes.set_xlim(-0.6, len(edges) - 1.4)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_ylabel("file groups", fontsize=9)
    axes.set_xlabel("bytes of base file and log files", fontsize=9)
    legend = axes.legend(handles, labels, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    legend.set_title("partition", {"size": 9})


def _with_room(edges: Sequence[float]) -> list[float]:
    """Add bins at both ends if there are few, so that one bar does not fill the plot."""
    wide = list(edges)
    while len(wide) - 1 < _FEWEST_BINS:
        wide.append(wide[-1] * 2)
        if wide[0] > 1 and len(wide) - 1 < _FEWEST_BINS:
            wide.insert(0, wide[0] / 2)
    return wide


def _edge_text(edge: float) -> str:
    """Label of a bin edge; a power of two needs no decimals."""
    amount, _, unit = size_text(int(edge)).partition(" ")
    return f"{float(amount):g} {unit}"


def _by_partition(partitions: Sequence[str], sizes: Sequence[int]) -> list[tuple[str | None, list[int]]]:
    """Sizes of the largest partitions by total bytes, largest first, then of all others together (None)."""
    grouped: dict[str, list[int]] = {}
    for partition, size in zip(partitions, sizes, strict=True):
        grouped.setdefault(partition, []).append(size)
    ranked = sorted(grouped.items(), key=lambda one: (-sum(one[1]), one[0]))
    top: list[tuple[str | None, list[int]]] = [(name, members) for name, members in ranked[:_PARTITIONS]]
    rest = [size for _, members in ranked[_PARTITIONS:] for size in members]
    return [*top, (None, rest)] if rest else top


def _counts(sizes: Sequence[int], edges: Sequence[float]) -> list[int]:
    counts = [0] * (len(edges) - 1)
    for size in sizes:
        at = next((at for at in range(len(counts)) if size < edges[at + 1]), len(counts) - 1)
        counts[at] += 1
    return counts


def _label(partition: str | None, sizes: Sequence[int], others: int) -> str:
    total = size_text(sum(sizes))
    if partition is None:
        return f"{others:,} others ({total})"
    name = partition or "(no partitions)"
    shown = name if len(name) <= _LABEL_LETTERS else f"{name[: _LABEL_LETTERS - 1]}…"
    return f"{_plain(shown)} ({total})"


def _plain(text: str) -> str:
    """Escape text for matplotlib, where dollar signs start formulas and a leading underscore hides a legend entry."""
    escaped = text.replace("\\", "\\\\").replace("$", "\\$") if "$" in text else text
    return f"\u200b{escaped}" if escaped.startswith("_") else escaped


def _unframe(axes: Any) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
