"""Charts of results in one call: `result.plot.rates()`.

Every function takes `backend`: "altair" (default) returns a chart for notebooks and web pages,
"matplotlib" a figure for papers. `pip install altair matplotlib` installs both. Axes name their
units. If there are several seeds, a chart over time shows the first one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from apus._metrics import titled, value_of
from apus._picture import Axis, Backend, Chart, Picture, groups, median, percentile
from apus.errors import ApusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from apus._native import Table
    from apus._result import Result, Run
    from apus._sweep import Sweep

__all__ = ["Backend", "Chart", "PlotError", "Plots", "SweepPlots", "comparison"]

_STEPS = 500
"""Maximum number of points of a CDF."""
_SIZES = 12
"""Maximum number of bins of sizes."""
COMPARED = ("goodput_gbps", "op_latency_us.p50", "op_latency_us.p99")
"""Metrics of a comparison if none are given."""


class PlotError(ApusError, ValueError):
    """A result lacks the data of a chart; the message names the setting that records them."""


class _Shown(NamedTuple):
    """What a chart over time shows."""

    table: str
    key: str
    """The column that identifies a flow or port."""
    rank: str
    """The column whose largest sums are shown."""
    wanted: int | Sequence[Any]
    """Number of flows or ports to show, or their keys."""


class Plots:
    """The charts of a result, or of one of its runs."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs

    def _firsts(self) -> list[tuple[str, Run]]:
        """Return the first seed of each variant, by its name."""
        firsts = groups_of(self._runs)
        return [(name, runs[0]) for name, runs in firsts.items()]

    def _panels(self) -> Axis | None:
        several = len(self._firsts()) > 1
        return Axis("variant", "variant", "name") if several else None

    # Over time

    def rates(self, *, flows: int | Sequence[int] = 8, backend: Backend = "altair") -> Chart:
        """Draw the goodput of flows over time.

        Args:
            flows: Number of flows (those with the most goodput), or the numbers of the flows.
            backend: The library that draws.

        Raises:
            PlotError: The result has no samples of flows.

        """
        return self._of_flows("Goodput of flows", "goodput_gbps", flows, backend)

    def windows(self, *, flows: int | Sequence[int] = 8, backend: Backend = "altair") -> Chart:
        """Draw the congestion windows of flows over time.

        Args:
            flows: Number of flows (those with the most goodput), or the numbers of the flows.
            backend: The library that draws.

        Raises:
            PlotError: The result has no samples of flows, or the algorithm has no window.

        """
        return self._of_flows("Congestion windows of flows", "cwnd_packets", flows, backend)

    def rtt(self, *, flows: int | Sequence[int] = 8, backend: Backend = "altair") -> Chart:
        """Draw the smoothed end-to-end RTT of flows over time.

        Args:
            flows: Number of flows (those with the most goodput), or the numbers of the flows.
            backend: The library that draws.

        Raises:
            PlotError: The result has no samples of flows.

        """
        return self._of_flows("Smoothed RTT of flows", "smoothed_rtt_us", flows, backend)

    def _of_flows(
        self, title: str, column: str, flows: int | Sequence[int], backend: Backend
    ) -> Chart:
        remedy = (
            "`[record] flows` sets how many flows are sampled, and `[record] interval` how often"
        )
        shown = _Shown("samples", "flow", "goodput_gbps", flows)
        return self._over_time(title, "line", column, shown, remedy).draw(backend)

    def queues(self, *, ports: int | Sequence[str] = 8, backend: Backend = "altair") -> Chart:
        """Draw the queues of ports over time.

        Args:
            ports: Number of ports (those with the largest queues), or the names of the ports.
            backend: The library that draws.

        Raises:
            PlotError: The result has no samples of ports.

        """
        remedy = (
            "`[record] ports` sets how many ports are sampled, and `[record] nics` whether NICs are"
        )
        shown = _Shown("port_samples", "port", "queue_bytes", ports)
        return self._over_time("Queues of ports", "step", "queue_bytes", shown, remedy).draw(
            backend
        )

    def _over_time(
        self, title: str, mark: Literal["line", "step"], column: str, shown: _Shown, remedy: str
    ) -> Picture:
        """Draw a column of samples over time, for the flows or ports that are shown."""
        rows: list[dict[str, Any]] = []
        table = getattr(self._runs[0], shown.table)
        for variant, run in self._firsts():
            names = list(dict.fromkeys(["time_us", shown.key, shown.rank, column]))
            all_rows = list(_rows(getattr(run, shown.table), names))
            chosen = _most(all_rows, shown.key, shown.rank, shown.wanted)
            rows += [
                {"variant": variant, **row}
                for row in all_rows
                if row[shown.key] in chosen and row[column] is not None
            ]
        if not rows:
            raise PlotError(f"{title}: the result has no sample with `{column}`; {remedy}")
        return Picture(
            title,
            mark,
            rows,
            Axis("time_us", _title(table, "time_us")),
            Axis(column, _title(table, column)),
            colour=Axis(shown.key, shown.key, "name"),
            panels=self._panels(),
        )

    # Of ops

    def cdf(self, column: str = "latency_us", *, backend: Backend = "altair") -> Chart:
        """Draw the distribution of a column of the ops of the measured phase, all seeds together.

        Unfinished ops count: a curve that ends below 1 shows their share.

        Args:
            column: A column of `result.ops` with numbers, such as `latency_us` or `slowdown`.
            backend: The library that draws.

        Raises:
            PlotError: The result has no ops.

        """
        rows = []
        for variant, ops in self._ops([column]):
            # The latency of an unfinished op is its age, a lower bound.
            values = sorted(row[column] for row in ops if _ended(row) and row[column] is not None)
            for place in _places(len(values), _STEPS):
                share = (place + 1) / len(ops)
                rows.append({"variant": variant, column: values[place], "share": share})
        if not rows:
            raise _no_ops("Distribution")
        positive = all(row[column] > 0 for row in rows)
        picture = Picture(
            f"Distribution of {column}",
            "step",
            rows,
            Axis(column, _title(self._runs[0].ops, column), "log" if positive else "number"),
            Axis("share", "share of ops"),
            colour=Axis("variant", "variant", "name") if self._panels() else None,
        )
        return picture.draw(backend)

    def slowdown(self, *, backend: Backend = "altair") -> Chart:
        """Draw the slowdown of ops by their size: median and 99th percentile, all seeds together.

        Sizes are in bins of about equal numbers of ops. A percentile that unfinished ops could
        change is omitted.

        Args:
            backend: The library that draws.

        Raises:
            PlotError: The result has no ops.

        """
        rows = []
        for variant, ops in self._ops(["size_bytes", "slowdown"]):
            for size, own in _bins(ops):
                values = sorted(
                    row["slowdown"] if _ended(row) and row["slowdown"] is not None else math.inf
                    for row in own
                )
                for name, share in (("p50", 0.5), ("p99", 0.99)):
                    value = percentile(values, share)
                    rows.append(
                        {
                            "variant": variant,
                            "size_bytes": size,
                            "percentile": name,
                            "slowdown": value if math.isfinite(value) else None,
                        }
                    )
        if not rows:
            raise _no_ops("Slowdown by size")
        picture = Picture(
            "Slowdown by size",
            "line",
            rows,
            Axis("size_bytes", "size [B]", "log"),
            Axis("slowdown", "slowdown", "log"),
            colour=Axis("variant", "variant", "name") if self._panels() else None,
            dash=Axis("percentile", "percentile", "name"),
        )
        return picture.draw(backend)

    def _ops(self, columns: Sequence[str]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Yield the ops of the measured phase of each variant."""
        for variant, runs in groups_of(self._runs).items():
            ops = [
                row
                for run in runs
                for row in _rows(run.ops, ["phase", "outcome", *columns])
                if row["phase"] == "measured"
            ]
            if ops:
                yield variant, ops

    # Of the whole run

    def links(self, column: str = "utilisation", *, backend: Backend = "altair") -> Chart:
        """Draw a heat map of all links.

        Args:
            column: A column of `result.ports` with numbers, such as `utilisation`, `loss_rate` or
                `max_queue_bytes`.
            backend: The library that draws.

        Raises:
            PlotError: The result has no ports.

        """
        rows = [
            {"variant": variant, **row}
            for variant, run in self._firsts()
            for row in _rows(run.ports, ["from", "to", column])
        ]
        if not rows:
            raise PlotError("Links: the run has no port; a topology with links has some")
        picture = Picture(
            f"Links: {column}",
            "heat",
            rows,
            Axis("to", "to", "name"),
            Axis("from", "from", "name"),
            colour=Axis(column, _title(self._runs[0].ports, column)),
            panels=self._panels(),
        )
        return picture.draw(backend)

    def load_curve(
        self, metric: str = "op_latency_us.p99", *, backend: Backend = "altair"
    ) -> Chart:
        """Draw a metric over the values of the variants: medians over seeds, and their range.

        Args:
            metric: Name of the metric (docs/outputs.md).
            backend: The library that draws.

        Raises:
            PlotError: The variants have no values.

        """
        valued = [(run.value, run) for run in self._runs if run.value is not None]
        if not valued:
            raise PlotError(
                "Load curve: the variants have no values; `[sweep]` in the scenario makes "
                "such variants, and `apus.sweep(...).plot.load_curve()` draws settings"
            )
        found = [
            Measured(value, "", value_of(run.summary.to_dict(), metric)) for value, run in valued
        ]
        return _curve(found, "value of the variant", "", metric).draw(backend)

    def comparison(self, *metrics: str, backend: Backend = "altair") -> Chart:
        """Draw metrics of the variants next to each other: medians over seeds.

        Args:
            metrics: Names of metrics (docs/outputs.md).
            backend: The library that draws.

        Raises:
            PlotError: No run has a value of any metric.

        """
        return _comparison(groups_of(self._runs), metrics, backend)


class SweepPlots:
    """The charts of a sweep."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep

    def load_curve(
        self,
        metric: str = "op_latency_us.p99",
        *,
        x: str | None = None,
        backend: Backend = "altair",
    ) -> Chart:
        """Draw a metric over a setting: medians over seeds, and their range.

        Colours show the other settings and the variants.

        Args:
            metric: Name of the metric (docs/outputs.md).
            x: The setting of the horizontal axis; the first one if not given.
            backend: The library that draws.

        Raises:
            PlotError: No point has a result, or the sweep does not vary the setting.

        """
        points = [point for point in self._sweep if point.done]
        if not points:
            raise PlotError(f"{self._sweep!r}: no point has a result yet")
        settings = list(points[0].settings)
        if x is None:
            x = settings[0]
        if x not in settings:
            raise PlotError(f"x={x!r}: the sweep varies {', '.join(settings)}")
        units = {quantity(point.settings[x])[1] for point in points}
        numbers = len(units) == 1 and None not in units
        unit = units.pop() if numbers else ""
        found = []
        for point in points:
            value = point.settings[x]
            others = [f"{key}={own}" for key, own in point.settings.items() if key != x]
            others += [] if point.variant is None else [point.variant]
            at = quantity(value)[0] if numbers else str(value)
            found.append(Measured(at, ", ".join(others), point.metric(metric)))
        return _curve(found, x, unit or "", metric).draw(backend)


def comparison(results: Mapping[str, Result], *metrics: str, backend: Backend = "altair") -> Chart:
    """Draw metrics of several results next to each other: medians over their runs.

    Args:
        results: The results by name: `{"swift": apus.run(...), "dctcp": apus.run(...)}`.
        metrics: Names of metrics (docs/outputs.md).
        backend: The library that draws.

    Raises:
        PlotError: No run has a value of any metric.

    """
    return _comparison({name: list(result) for name, result in results.items()}, metrics, backend)


class Measured(NamedTuple):
    """A point of a curve."""

    at: float | str
    series: str
    value: float | None


def _curve(found: Sequence[Measured], x: str, unit: str, metric: str) -> Picture:
    title = titled(metric)
    rows = []
    for series, own in groups([one._asdict() for one in found], "series").items():
        for at, same in groups(own, "at").items():
            values = [one["value"] for one in same if one["value"] is not None]
            # A seed without a value would leave a median of the others, which is better than it is.
            known = len(values) == len(same)
            rows.append(
                {
                    "at": at,
                    "series": series,
                    "value": median(values) if known else None,
                    "low": min(values) if known else None,
                    "high": max(values) if known else None,
                }
            )
    if all(row["value"] is None for row in rows):
        raise PlotError(f"{metric}: no run has a value; it was not measured, or is censored")
    numbers = all(isinstance(row["at"], float) for row in rows)
    if numbers:
        rows.sort(key=lambda row: row["at"])
    several = len({row["series"] for row in rows}) > 1
    return Picture(
        metric,
        "line",
        rows,
        Axis("at", f"{x} [{unit}]" if unit else x, "number" if numbers else "name"),
        Axis("value", title),
        colour=Axis("series", "settings", "name") if several else None,
        band=("low", "high"),
    )


def _comparison(
    runs: Mapping[str, Sequence[Run]], metrics: Sequence[str], backend: Backend
) -> Chart:
    rows = []
    for metric in metrics or COMPARED:
        title = titled(metric)
        for name, own in runs.items():
            found = [value_of(run.summary.to_dict(), metric) for run in own]
            values = [value for value in found if value is not None]
            value = median(values) if values and len(values) == len(found) else None
            rows.append({"metric": title, "name": name, "value": value})
    return bars(rows, backend)


def bars(rows: Sequence[Mapping[str, Any]], backend: Backend) -> Chart:
    """Draw each `metric` in its own panel: the `value` of each `name`."""
    if all(row["value"] is None for row in rows):
        raise PlotError("Comparison: no run has a value; it was not measured, or is censored")
    picture = Picture(
        "Comparison",
        "bar",
        rows,
        Axis("name", "", "name"),
        Axis("value", ""),
        colour=Axis("name", "", "name"),
        panels=Axis("metric", "metric", "name"),
        own_scales=True,
    )
    return picture.draw(backend)


def groups_of(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Return runs by their variant, or by their name without variants."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.variant or run.name, []).append(run)
    return found


def quantity(value: object) -> tuple[float, str | None]:
    """Return a value as a number and its unit, `(20.0, "us")`; the unit of a text is `None`."""
    if isinstance(value, bool):
        return math.nan, None
    if isinstance(value, int | float):
        return float(value), ""
    text = str(value).strip()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/%")
    try:
        return float(number), text[len(number) :]
    except ValueError:
        return math.nan, None


def _rows(table: Table, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    try:
        values = table.values(columns)
    except KeyError as error:
        raise PlotError(
            f"{error.args[0]!r} is no column of the table `{table.name}`; it has "
            f"{', '.join(table.columns)}"
        ) from None
    for cells in zip(*values, strict=True):
        yield dict(zip(columns, cells, strict=True))


def _title(table: Table, column: str) -> str:
    unit = table.unit(column)
    # The name of a column ends with its unit.
    name = column.rsplit("_", 1)[0] if unit and "_" in column else column
    return f"{name.replace('_', ' ')} [{unit}]" if unit else name.replace("_", " ")


def _most(
    rows: Sequence[Mapping[str, Any]], key: str, column: str, wanted: int | Sequence[Any]
) -> set[Any]:
    """Return the keys with the largest sums of a column, or the keys that the user names."""
    if not isinstance(wanted, int):
        known = {row[key] for row in rows}
        for name in wanted:
            if name not in known:
                raise PlotError(f"{key} {name!r} has no samples; those with samples are {known}")
        return set(wanted)
    if wanted < 1:
        raise PlotError(f"{key}s={wanted}: must be at least 1")
    sums: dict[Any, float] = {}
    for row in rows:
        sums[row[key]] = sums.get(row[key], 0) + (row[column] or 0)
    return set(sorted(sums, key=lambda name: -sums[name])[:wanted])


def _ended(op: Mapping[str, Any]) -> bool:
    return bool(op["outcome"] == "done")


def _places(count: int, most: int) -> list[int]:
    """Return at most `most` indices of a list, evenly spread, with the first and the last."""
    if count <= most:
        return list(range(count))
    return [round(i * (count - 1) / (most - 1)) for i in range(most)]


def _bins(
    ops: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[int, Sequence[Mapping[str, Any]]]]:
    """Yield ops by size, with the largest size of each bin."""
    ranked = sorted(ops, key=lambda op: op["size_bytes"])
    start = 0
    for i in range(_SIZES):
        end = len(ranked) * (i + 1) // _SIZES
        # Ops of one size are in one bin.
        while start < end < len(ranked) and (
            ranked[end]["size_bytes"] == ranked[end - 1]["size_bytes"]
        ):
            end += 1
        if end > start:
            yield ranked[end - 1]["size_bytes"], ranked[start:end]
            start = end


def _no_ops(chart: str) -> PlotError:
    return PlotError(
        f"{chart}: the result has no finished op of the measured phase; `[record] ops` sets how "
        "many ops are kept, and a longer `duration` or `drain` lets ops end"
    )
