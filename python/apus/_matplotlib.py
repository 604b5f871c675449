"""Drawing of pictures as figures of matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apus._picture import groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from apus._picture import Axis, Picture

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError("figures need matplotlib: pip install matplotlib") from error

_COLUMN_IN = 3.4
"""Width of a column of a paper with two columns."""
_HEIGHT_IN = 2.3
_COLUMNS = 3
"""Panels side by side."""
_DASHES = ("-", "--", ":", "-.")


def figure(picture: Picture) -> Figure:
    """Return the figure of a picture; without panels, as wide as a column of a paper."""
    panels = picture.panel_rows()
    wide = min(len(panels), _COLUMNS)
    high = -(-len(panels) // _COLUMNS)
    drawn = Figure(figsize=(_COLUMN_IN * wide, _HEIGHT_IN * high), layout="constrained")
    shared: Any = False if picture.own_scales else "all"
    grid = drawn.subplots(high, wide, squeeze=False, sharey=shared)
    colours = _colours(picture)
    for axes, (name, rows) in zip(grid.flat, panels.items(), strict=False):
        _draw(axes, picture, rows, colours)
        axes.set_title(str(name) if picture.panels else picture.title, fontsize="medium")
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    if picture.panels:
        drawn.suptitle(picture.title)
    return drawn


def _draw(
    axes: Axes, picture: Picture, rows: Sequence[Mapping[str, Any]], colours: Mapping[Any, str]
) -> None:
    axes.set_xlabel(picture.x.title)
    axes.set_ylabel(picture.y.title)
    if picture.mark == "heat":
        _heat(axes, picture, rows)
        return
    if picture.mark == "bar":
        heights = [row[picture.y.field] or 0 for row in rows]
        of_row = [colours[_value(picture.colour, row)] for row in rows]
        axes.bar([str(row[picture.x.field]) for row in rows], heights, color=of_row)
        axes.tick_params(axis="x", labelrotation=30)
    else:
        _lines(axes, picture, rows, colours)
    for axis, scale in ((picture.x, axes.set_xscale), (picture.y, axes.set_yscale)):
        if axis.kind == "log":
            scale("log")


def _lines(
    axes: Axes, picture: Picture, rows: Sequence[Mapping[str, Any]], colours: Mapping[Any, str]
) -> None:
    points = picture.mark == "point"
    dashes = list(groups(picture.rows, picture.dash.field if picture.dash else None))
    for name, of_colour in groups(rows, picture.colour.field if picture.colour else None).items():
        parts = groups(of_colour, picture.dash.field if picture.dash else None)
        for part, line in parts.items():
            xs = [row[picture.x.field] for row in line]
            # A missing value is a gap.
            ys = [_number(row[picture.y.field]) for row in line]
            label = " ".join(str(text) for text in (name, part) if text != "")
            axes.plot(
                xs,
                ys,
                color=colours[name],
                marker="o" if points else "",
                markersize=3,
                linestyle="" if points else _DASHES[dashes.index(part) % len(_DASHES)],
                drawstyle="steps-post" if picture.mark == "step" else "default",
                label=label or None,
                linewidth=1,
            )
            if picture.band is not None:
                low, high = ([_number(row[end]) for row in line] for end in picture.band)
                axes.fill_between(xs, low, high, color=colours[name], alpha=0.2, linewidth=0)
    if distinct := picture.colour or picture.dash:
        axes.legend(fontsize="x-small", title=distinct.title, title_fontsize="x-small")


def _heat(axes: Axes, picture: Picture, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = list(groups(rows, picture.x.field))
    lines = list(groups(rows, picture.y.field))
    cells = [[float("nan")] * len(columns) for _ in lines]
    value = picture.colour
    for row in rows:
        cells[lines.index(row[picture.y.field])][columns.index(row[picture.x.field])] = _number(
            row[value.field] if value else None
        )
    image = axes.imshow(cells, aspect="auto", interpolation="none")
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize="xx-small")
    axes.set_yticks(range(len(lines)), lines, fontsize="xx-small")
    axes.figure.colorbar(image, ax=axes, label=value.title if value else "")


def _colours(picture: Picture) -> dict[Any, str]:
    names = groups(picture.rows, picture.colour.field if picture.colour else None)
    return {name: f"C{index % 10}" for index, name in enumerate(names)}


def _value(axis: Axis | None, row: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a cell
    return "" if axis is None else row[axis.field]


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
