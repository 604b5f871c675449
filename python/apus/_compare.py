"""Comparison of several algorithms on one scenario."""

from __future__ import annotations

import json
import os
import warnings
from typing import TYPE_CHECKING, Any

from apus import _native
from apus._metrics import titled
from apus._progress import Reporter
from apus._run import ApusWarning
from apus._toml import assignments
from apus.errors import Interrupted, RunError, ScenarioError
from apus.plot import COMPARED, bars
from apus.scenarios import Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from apus._picture import Backend, Chart
    from apus._types import ContestOptions, Progress, RunOptions, Settings
    from apus.algorithms import Algorithm


class Comparison:
    """Results of several algorithms on one scenario: medians and differences."""

    def __init__(self, native: _native.Compared) -> None:
        self._text = native.text
        self._data: Mapping[str, Any] = json.loads(native.json)
        self.html: str = native.html
        """The page of `apus compare --out`, without the parts that need recorded runs."""

    @property
    def algorithms(self) -> list[str]:
        """Labels of the algorithms, in order. Differences refer to the first algorithm."""
        return [one["algorithm"] for one in self._data["algorithms"]]

    def median(self, algorithm: str, metric: str) -> float | None:
        """Return the median of a metric over the seeds; `None` if it is unknown or censored.

        Raises:
            KeyError: The comparison does not contain the algorithm or the metric.
        """
        value = self._of(algorithm)["metrics"][metric]
        return None if value is None else value["median"]

    def difference(self, algorithm: str, metric: str) -> tuple[float, float, float] | None:
        """Return the difference of a metric between an algorithm and the first algorithm.

        The result is the mean over the seeds of both, and the lower and upper end of the 95 %
        confidence interval (Student's t, paired by seed). It is `None` for the first algorithm, and
        if the difference is known for fewer than two seeds.

        Raises:
            KeyError: The comparison does not contain the algorithm or the metric.
        """
        of = self._of(algorithm)
        if metric not in of["metrics"]:
            raise KeyError(metric)
        value = None if of["differences"] is None else of["differences"][metric]
        if value is None or value["low"] is None:
            return None
        return (value["mean"], value["low"], value["high"])

    def rows(self) -> list[dict[str, str | float | None]]:
        """Return one row per algorithm and metric, for data libraries."""
        return [
            {"algorithm": one["algorithm"], "metric": metric, **(value or {"median": None})}
            for one in self._data["algorithms"]
            for metric, value in one["metrics"].items()
        ]

    def plot(self, *metrics: str, backend: Backend = "altair") -> Chart:
        """Draw metrics of the algorithms next to each other: medians over seeds.

        Args:
            metrics: Names of metrics of this comparison; goodput and latencies if not given.
            backend: The library that draws.

        Raises:
            PlotError: No algorithm has a value of any metric.

        """
        rows = [
            {"metric": titled(metric), "name": one["algorithm"], "value": value["median"]}
            for metric in metrics or COMPARED
            for one in self._data["algorithms"]
            if (value := one["metrics"].get(metric)) is not None
        ]
        return bars(rows, backend)

    def to_dict(self) -> Mapping[str, Any]:
        """Return the comparison as in compare.json."""
        return self._data

    def _of(self, algorithm: str) -> Mapping[str, Any]:
        for one in self._data["algorithms"]:
            if one["algorithm"] == algorithm:
                return dict(one)
        raise KeyError(algorithm)

    def __repr__(self) -> str:
        return self._text


def compare(
    scenario: str | os.PathLike[str] | Scenario,
    algorithms: Sequence[str | Algorithm],
    *,
    set: Settings | None = None,  # noqa: A002 - the name of the command's option
    variant: str | None = None,
    seeds: int = 5,
    metrics: Sequence[str] = (),
    tune_each: bool = False,
    objective: str | None = None,
    keep: float | None = None,
    tune_values: int | None = None,
    tune_seeds: int | None = None,
    threads: int | None = None,
    watchdog: str = "1s",
    max_memory: str | None = None,
    progress: Progress = None,
) -> Comparison:
    """Run one scenario with several algorithms and compare their results.

    Each algorithm carries all traffic of the scenario, with switches that support the algorithm.

    Args:
        scenario: A scenario file, the name of a built-in scenario, or a `Scenario`.
        algorithms: Names, each with a profile if it is not the default one (`"dctcp:gcn"`), labels
            of algorithms in the scenario, or algorithms with parameters (`apus.Swift(...)`).
        set: Settings of all runs, or of one algorithm of the comparison:
            `{"hpcc.base_rtt": "13us"}`.
        variant: The variant of the scenario on which to compare.
        seeds: Number of seeds, from the scenario's own seed upwards.
        metrics: Additional metrics (`apus list metrics`).
        tune_each: First search for the best value of each algorithm's own parameter. The next four
            arguments require this option.
        objective: The metric to optimise; "op_latency_us.p99" if not given.
        keep: Minimum goodput of a value, in percent of the algorithm's best goodput; 98 if not
            given.
        tune_values: Number of values per algorithm, including its current parameters; 8 if not
            given.
        tune_seeds: Number of seeds per value; 3 if not given. They differ from the seeds of the
            comparison.
        threads: See `apus.run`.
        watchdog: See `apus.run`.
        max_memory: See `apus.run`.
        progress: See `apus.run`.

    Raises:
        ScenarioError: The scenario or an argument is wrong. Nothing was run.
        RunError: A run failed, or made no progress; `result` has the other runs.
        Interrupted: The user ended the call (Ctrl-C); `result` has everything measured so far.
    """
    search = {
        "objective": objective,
        "keep": keep,
        "tune_values": tune_values,
        "tune_seeds": tune_seeds,
    }
    for argument, value in search.items():
        if value is not None and not tune_each:
            raise ScenarioError(f"{argument}={value!r}: has no effect without tune_each=True")
    labels, parameters = named(algorithms)
    contest: ContestOptions = {
        "algorithms": labels,
        "set": [*parameters, *assignments(set)],
        "variant": variant,
        "seeds": seeds,
        "metrics": list(metrics),
        "tune_each": tune_each,
        "objective": "op_latency_us.p99" if objective is None else objective,
        "keep": 98.0 if keep is None else keep,
        "tune_values": 8 if tune_values is None else tune_values,
        "tune_seeds": 3 if tune_seeds is None else tune_seeds,
    }
    how: RunOptions = {"threads": threads, "watchdog": watchdog, "max_memory": max_memory}
    text = scenario.to_toml() if isinstance(scenario, Scenario) else None
    name = "Scenario" if isinstance(scenario, Scenario) else os.fspath(scenario)
    try:
        with Reporter(progress) as reporter:
            native = _native.compare(name, text, contest, how, reporter.report)
    except ScenarioError as error:
        raise scenario.located(error) if isinstance(scenario, Scenario) else error from None
    for report in native.warnings:
        warnings.warn(report, ApusWarning, stacklevel=2)
    comparison, raised = Comparison(native), native.raised
    if isinstance(raised, KeyboardInterrupt):
        text = "\n".join(["interrupted; results are partial", *native.failures])
        raise Interrupted(text, comparison) from raised
    if raised is not None:
        raise raised
    if native.failures:
        raise RunError("\n".join(native.failures), comparison)
    return comparison


def named(algorithms: Sequence[str | Algorithm]) -> tuple[list[str], list[str]]:
    """Return the labels of algorithms, and their parameters as settings."""
    labels, settings = [], []
    for one in algorithms:
        if isinstance(one, str):
            labels.append(one)
            continue
        if isinstance(one, type):
            raise ScenarioError(f"algorithms: {one.__name__} is a class; write {one.__name__}()")
        parameters = dict(one.settings)
        name, profile = parameters.pop("name"), parameters.pop("profile", None)
        label = f"{name}" if profile is None else f"{name}:{profile}"
        labels.append(label)
        settings += [f"{label}.{text}" for text in assignments(parameters)]
    return labels, settings
