"""Drawing of pictures as charts of altair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apus._picture import Axis, Picture

try:
    import altair as alt
except ImportError as error:
    raise ImportError("charts need altair: pip install altair, or backend='matplotlib'") from error

_WIDTH, _HEIGHT = 480, 260
_PANEL_WIDTH, _PANEL_HEIGHT = 220, 180
_COLUMNS = 3
"""Panels side by side."""


def chart(picture: Picture) -> alt.Chart | alt.FacetChart | alt.LayerChart:
    """Return the chart of a picture."""
    # The order of names is that of the data, not that of the alphabet.
    rows = list(picture.rows)
    # Data within the chart have no limit of rows, unlike a table of a data library.
    base = alt.Chart(alt.InlineData(values=[dict(row) for row in rows]))
    base = base.encode(
        x=alt.X(picture.x.field, **_options(picture.x, rows)),
        y=alt.Y(picture.y.field, **_options(picture.y, rows)),
    )
    if picture.colour is not None:
        base = base.encode(color=alt.Color(picture.colour.field, **_options(picture.colour, rows)))
    if picture.dash is not None:
        dash = alt.StrokeDash(picture.dash.field, **_options(picture.dash, rows, scale=False))
        base = base.encode(strokeDash=dash)
    shown = _axes(picture)
    base = base.encode(tooltip=[_tooltip(axis) for axis in shown])
    drawn: alt.Chart | alt.LayerChart
    match picture.mark:
        case "line":
            drawn = base.mark_line(clip=True)
        case "step":
            drawn = base.mark_line(interpolate="step-after", clip=True)
        case "bar":
            drawn = base.mark_bar()
        case "heat":
            drawn = base.mark_rect()
        case "point":
            drawn = base.mark_point(filled=True)
    if picture.band is not None:
        low, high = picture.band
        area = base.mark_area(opacity=0.2).encode(
            y=alt.Y(low, **_options(picture.y, rows)), y2=alt.Y2(high)
        )
        drawn = area + drawn
    if picture.panels is None:
        return drawn.properties(title=picture.title, width=_WIDTH, height=_HEIGHT)
    names = list(dict.fromkeys(row[picture.panels.field] for row in rows))
    panels = drawn.properties(width=_PANEL_WIDTH, height=_PANEL_HEIGHT).facet(
        facet=alt.Facet(picture.panels.field, type="nominal", title=None, sort=names),
        columns=_COLUMNS,
        title=picture.title,
    )
    return panels.resolve_scale(y="independent") if picture.own_scales else panels


def _axes(picture: Picture) -> list[Axis]:
    named = (picture.panels, picture.colour, picture.dash, picture.x, picture.y)
    found = {axis.field: axis for axis in named if axis is not None}
    return list(found.values())


def _options(axis: Axis, rows: Iterable[Any], *, scale: bool = True) -> dict[str, Any]:
    options: dict[str, Any] = {"title": axis.title}
    if axis.kind == "name":
        names = list(dict.fromkeys(row[axis.field] for row in rows))
        return {**options, "type": "nominal", "sort": names}
    options["type"] = "quantitative"
    if axis.kind == "log" and scale:
        options["scale"] = alt.Scale(type="log")
    return options


def _tooltip(axis: Axis) -> alt.Tooltip:
    kind: Any = "nominal" if axis.kind == "name" else "quantitative"
    return alt.Tooltip(axis.field, type=kind, title=axis.title)
