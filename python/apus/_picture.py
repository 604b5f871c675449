"""Pictures as data: what a chart shows, for every library that draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Backend = Literal["altair", "matplotlib"]
"""The library that draws: altair for notebooks and pages, matplotlib for papers."""


Chart = Any
"""A chart of altair or a figure of matplotlib, whose types only exist if they are installed."""


@dataclass(frozen=True)
class Axis:
    """A column of the data as an axis, a colour or a panel."""

    field: str
    """Name of the column."""
    title: str
    """Name with its unit."""
    kind: Literal["number", "log", "name"] = "number"
    """Numbers on a linear or a logarithmic scale, or names."""


@dataclass(frozen=True)
class Picture:
    """A chart, independent of the library that draws it."""

    title: str
    mark: Literal["line", "step", "bar", "heat", "point"]
    rows: Sequence[Mapping[str, Any]] = field(repr=False)
    x: Axis
    y: Axis
    colour: Axis | None = None
    """Distinguishes lines; the value of a cell of a heat map."""
    dash: Axis | None = None
    """Distinguishes lines of one colour."""
    panels: Axis | None = None
    """Distinguishes charts next to each other."""
    band: tuple[str, str] | None = None
    """Columns of the lower and the upper end of an area around a line."""
    own_scales: bool = False
    """Whether each panel has a vertical scale of its own."""

    def draw(self, backend: Backend) -> Chart:
        """Return the chart, drawn by a library."""
        if backend == "altair":
            from apus import _altair  # noqa: PLC0415 - an optional library

            return _altair.chart(self)
        if backend == "matplotlib":
            from apus import _matplotlib  # noqa: PLC0415

            return _matplotlib.figure(self)
        raise ValueError(f"backend={backend!r}: must be 'altair' or 'matplotlib'")

    def panel_rows(self) -> dict[str, list[Mapping[str, Any]]]:
        """Return the rows of each panel, in the order of the data."""
        return groups(self.rows, None if self.panels is None else self.panels.field)


def groups(
    rows: Iterable[Mapping[str, Any]], column: str | None
) -> dict[Any, list[Mapping[str, Any]]]:
    """Return rows by the value of a column, in the order of the data; one group without it."""
    found: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault("" if column is None else row[column], []).append(row)
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """Return the percentile by nearest rank of sorted values; `share` is from 0 to 1."""
    rank = -int(-len(values) * share // 1)
    return values[max(rank, 1) - 1]


def median(values: Iterable[float]) -> float:
    """Return the median: the mean of the middle two of an even number."""
    ranked = sorted(values)
    half = len(ranked) // 2
    return ranked[half] if len(ranked) % 2 else (ranked[half - 1] + ranked[half]) / 2
