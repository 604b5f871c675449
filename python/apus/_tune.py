"""Tuning: a search over several parameters, by Optuna."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from apus._metrics import titled
from apus._picture import Axis, Backend, Chart, Picture, median
from apus._points import check_effect, checked_seeds, plan
from apus._progress import Reporter
from apus._sweep import SweepError, begin
from apus._toml import assignments
from apus.errors import ApusError, ScenarioError
from apus.plot import PlotError, quantity

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping
    from concurrent.futures import Executor

    import optuna

    from apus._sweep import Client, Sweep
    from apus._types import Progress, ReadOptions, RunOptions, Settings, Value
    from apus.scenarios import Scenario

_DIGITS = 4
"""Significant digits of a value that the search chooses."""

_RATES = ("bps", "kbps", "Mbps", "Gbps", "Tbps")
_DECIMAL: Mapping[str, int] = {
    unit: 3 * thousands
    for units in (("ps", "ns", "us", "ms", "s"), ("B", "kB", "MB", "GB", "TB"), _RATES)
    for thousands, unit in enumerate(units)
}
"""Decimals of the units of scenarios: a value has no fraction of a ps, B or bps."""
_BINARY: Mapping[str, int] = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
"""Bytes of the other units."""


@dataclass(frozen=True)
class Range:
    """A range of numbers or of quantities with one unit, such as `Range("10us", "200us")`."""

    low: float | str
    """Smallest value."""
    high: float | str
    """Largest value."""
    log: bool = False
    """Whether the search uses the logarithm of the values, for ranges of several magnitudes."""


@dataclass(frozen=True)
class Trial:
    """Settings that the search tried, with their metrics."""

    settings: Mapping[str, Value]
    """The values of the parameters."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The median of each metric over the seeds; empty if the trial failed."""
    failure: str | None = None
    """Reason why the trial has no metrics."""


class TuneError(ApusError, RuntimeError):
    """A search has no result: no trial has metrics, or a run of `apus.tune_target` failed."""


class Tuning(Sequence[Trial]):
    """The trials of a search in their order."""

    def __init__(
        self, trials: Sequence[Trial], best: Sequence[int], metrics: Sequence[str]
    ) -> None:
        self._trials = tuple(trials)
        self._best = tuple(best)
        self._metrics = tuple(metrics)

    @property
    def front(self) -> list[Trial]:
        """The Pareto front: the trials that no other trial surpasses in all metrics.

        The trials are in the order of the first metric.
        """
        front = [self._trials[index] for index in self._best]
        return sorted(front, key=lambda trial: trial.metrics[self._metrics[0]])

    @property
    def failures(self) -> list[Trial]:
        """The trials without metrics; their `failure` is the reason."""
        return [trial for trial in self._trials if trial.failure is not None]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per trial with metrics, for any data library."""
        return [
            {**trial.settings, **trial.metrics, "front": index in self._best}
            for index, trial in enumerate(self._trials)
            if trial.failure is None
        ]

    def plot(self, *, backend: Backend = "altair") -> Chart:
        """Draw all trials over the first two metrics, with the Pareto front."""
        if len(self._metrics) < 2:  # noqa: PLR2004 - two axes
            raise PlotError("Pareto front: the search has one metric; a chart needs two")
        first, second = self._metrics[:2]
        rows = [
            {first: row[first], second: row[second], "trials": ("others", "front")[row["front"]]}
            for row in self.rows()
        ]
        # A dot in the name of a column is a path in altair.
        renamed = [{"x": row[first], "y": row[second], "trials": row["trials"]} for row in rows]
        axes = (Axis("x", titled(first)), Axis("y", titled(second)))
        colour = Axis("trials", "trials", "name")
        return Picture("Pareto front", "point", renamed, *axes, colour=colour).draw(backend)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as a tuple
        return self._trials[index]

    def __len__(self) -> int:
        return len(self._trials)

    def __repr__(self) -> str:
        lines = [f"Tuning: {len(self)} trials, {len(self.failures)} failed; Pareto front:"]
        for trial in self.front:
            settings = ", ".join(f"{key}={value}" for key, value in trial.settings.items())
            metrics = ", ".join(f"{titled(key)} {x:.4g}" for key, x in trial.metrics.items())
            lines.append(f"  {settings}: {metrics}")
        return "\n".join(lines)


def tune(
    scenario: str | os.PathLike[str] | Scenario,
    search: Mapping[str, Range | Sequence[Value]],
    *,
    minimize: Sequence[str] = ("op_latency_us.p99",),
    maximize: Sequence[str] = ("goodput_gbps",),
    trials: int = 40,
    batch: int = 8,
    seeds: int | Iterable[int] = 1,
    sampler_seed: int = 0,
    executor: Executor | Client | None = None,
    out: str | os.PathLike[str] | None = None,
    set: Settings | None = None,  # noqa: A002 - the name of the command's option
    variant: str | None = None,
    watchdog: str = "1s",
    max_memory: str | None = None,
    progress: Progress = None,
) -> Tuning:
    """Search for the parameter values with the best latency and throughput, by Optuna.

    The search proposes trials in batches, from the metrics of earlier batches (tree-structured
    Parzen estimator). Equal arguments give equal trials, on any executor. `pip install
    optuna` installs Optuna.

    Args:
        scenario: A scenario file, the name of a built-in scenario, or a `Scenario`.
        search: Parameters by dotted key, each with a `Range` or a list of values.
        minimize: Metrics to minimise (docs/outputs.md).
        maximize: Metrics to maximise.
        trials: Number of trials.
        batch: Trials that run at the same time.
        seeds: Number of seeds of a trial from the scenario's own seed upwards, or the seeds, at
            most 10,000. The metrics of a trial are the medians over its seeds.
        sampler_seed: Seed of the search.
        executor: See `apus.sweep`.
        out: Directory that stores each run. If the call is repeated, it runs no finished run again.
        set: Settings that replace those of the scenario in all runs, by dotted key.
        variant: The variant of the scenario, if it has several.
        watchdog: See `apus.sweep`.
        max_memory: See `apus.sweep`.
        progress: See `apus.sweep`.

    Raises:
        ScenarioError: An argument is wrong, or the scenario is wrong with the first value of each
            parameter. Nothing was run.
        TuneError: No trial has metrics.
        SweepError: The executor ended early.
        SweepInterrupted: The user ended the call (Ctrl-C).

    """
    optuna = _optuna()
    fixed = set or {}
    metrics = [*minimize, *maximize]
    _check(search, metrics, trials, batch)
    check_effect(search, fixed, "search")
    read: ReadOptions = {
        "set": assignments(fixed),
        "seed": None,
        "variant": variant,
        "quick": False,
        "max_memory": max_memory,
    }
    how: RunOptions = {"threads": None, "watchdog": watchdog, "max_memory": max_memory}
    parameters = {key: _Parameter(key, space) for key, space in search.items()}
    _check_scenario(scenario, read, parameters)
    numbers = checked_seeds(seeds)
    directions = ["minimize"] * len(minimize) + ["maximize"] * len(maximize)
    sampler = optuna.samplers.TPESampler(seed=sampler_seed)
    study = _quietly(lambda: optuna.create_study(sampler=sampler, directions=directions))
    tried: list[Trial] = []
    with Reporter(progress) as reporter:
        while len(tried) < trials:
            asked = [study.ask() for _ in range(min(batch, trials - len(tried)))]
            proposed = [
                {key: parameter.suggest(trial) for key, parameter in parameters.items()}
                for trial in asked
            ]
            ended = _measure(
                proposed,
                scenario=scenario,
                read=read,
                how=how,
                seeds=numbers,
                executor=executor,
                out=out,
                metrics=metrics,
            )
            for question, answer in zip(asked, ended, strict=True):
                if answer.failure is None:
                    study.tell(question, list(answer.metrics.values()))
                else:
                    study.tell(question, state=optuna.trial.TrialState.FAIL)
            tried += ended
            if reporter.report is not None:
                reporter.report(len(tried) / trials, f"{len(tried)} of {trials} trials")
    if out is not None:
        # The directory then has the plan and the table of all trials.
        known = [trial.settings for trial in tried if trial.failure is None]
        begin(plan(scenario, read, known, numbers), executor, out, how).wait(progress=False)
    if all(trial.failure is not None for trial in tried):
        raise TuneError(f"none of {trials} trials has metrics; the first: {tried[0].failure}")
    return Tuning(tried, [trial.number for trial in study.best_trials], metrics)


class _Parameter:
    """A parameter of a search."""

    def __init__(self, key: str, space: Range | Sequence[Value]) -> None:
        self.key = key
        self.space = space
        if not isinstance(space, Range):
            return
        (low, unit), (high, other) = quantity(space.low), quantity(space.high)
        where = f"search[{key!r}]: {space}"
        if unit is None or other is None:
            raise ScenarioError(f"{where}: both ends must be numbers or quantities, like '10us'")
        if unit != other:
            raise ScenarioError(f"{where}: the units differ; write both ends in one unit")
        if low >= high:
            raise ScenarioError(f"{where}: `low` must be below `high`")
        if space.log and low <= 0:
            raise ScenarioError(f"{where}: with `log` both ends must be above 0")
        self.unit, self.low, self.high = unit, low, high
        self.whole = isinstance(space.low, int) and isinstance(space.high, int)

    def suggest(self, trial: optuna.Trial) -> Value:
        """Return the value that the search proposes."""
        space = self.space
        if not isinstance(space, Range):
            # Optuna takes texts and numbers only: the place in the list stands for the value.
            return space[trial.suggest_categorical(self.key, range(len(space)))]
        if self.whole:
            return int(trial.suggest_int(self.key, int(self.low), int(self.high), log=space.log))
        number = trial.suggest_float(self.key, self.low, self.high, log=space.log)
        # Rounding must not leave the range.
        number = min(max(float(f"{number:.{_DIGITS}g}"), self.low), self.high)
        return written(number, self.unit) if self.unit else number

    def any_value(self) -> Value:
        """Return a value, to check the scenario with."""
        return self.space.low if isinstance(self.space, Range) else self.space[0]


def written(number: float, unit: str) -> str:
    """Return a quantity as scenarios read it: no fraction of a base unit, and no exponent."""
    value = Decimal(repr(number))
    if unit in _BINARY:
        # A byte has up to 40 decimals in these units.
        value, unit = value * _BINARY[unit], "B"
    if unit in _DECIMAL:
        value = round(value, _DECIMAL[unit])
    return f"{value.normalize():f}{unit}"


def _check(
    search: Mapping[str, Range | Sequence[Value]], metrics: Sequence[str], trials: int, batch: int
) -> None:
    if not search:
        raise ScenarioError("search: has no parameter; write at least one")
    for key, space in search.items():
        if isinstance(space, str) or not isinstance(space, Range | Sequence) or space == []:
            raise ScenarioError(f"search[{key!r}]: {space!r} must be a Range or a list of values")
    if not metrics:
        raise ScenarioError("minimize and maximize: name no metric; name at least one")
    for name in metrics:
        titled(name)
    if len({*metrics}) < len(metrics):
        raise ScenarioError("minimize and maximize: a metric is there twice; remove one")
    for name, number in (("trials", trials), ("batch", batch)):
        if number < 1:
            raise ScenarioError(f"{name}={number}: must be at least 1")


def _check_scenario(
    scenario: str | os.PathLike[str] | Scenario,
    read: ReadOptions,
    parameters: Mapping[str, _Parameter],
) -> None:
    values = {key: parameter.any_value() for key, parameter in parameters.items()}
    runs = plan(scenario, read, [values], 1).points
    if len(runs) > 1:
        names = ", ".join(str(run.variant) for run in runs)
        raise ScenarioError(f"the scenario has several variants; choose one with variant=: {names}")


def _measure(
    proposed: Sequence[Mapping[str, Value]],
    *,
    scenario: str | os.PathLike[str] | Scenario,
    read: ReadOptions,
    how: RunOptions,
    seeds: int | list[int],
    executor: Executor | Client | None,
    out: str | os.PathLike[str] | None,
    metrics: Sequence[str],
) -> list[Trial]:
    """Run trials, and return them with their metrics."""
    wrong: dict[int, str] = {}
    for place, settings in enumerate(proposed):
        try:
            plan(scenario, read, [settings], seeds)
        except ScenarioError as error:
            # Values that contradict each other are no error of the user.
            wrong[place] = str(error)
    right = [settings for place, settings in enumerate(proposed) if place not in wrong]
    if right:
        sweep = begin(plan(scenario, read, right, seeds), executor, out, how)
        try:
            sweep.wait(progress=False)
        except SweepError:
            if sweep.lost is not None:
                raise
        each = len(sweep) // len(right)
        measured = iter(range(0, len(sweep), each))
    return [
        Trial(settings, failure=wrong[place])
        if place in wrong
        else _trial(settings, sweep, next(measured), each, metrics)
        for place, settings in enumerate(proposed)
    ]


def _trial(
    settings: Mapping[str, Value], sweep: Sweep, first: int, count: int, metrics: Sequence[str]
) -> Trial:
    points = sweep[first : first + count]
    for point in points:
        if point.failure is not None:
            return Trial(settings, failure=point.failure)
    medians = {}
    for name in metrics:
        values = [value for point in points if (value := point.metric(name)) is not None]
        if len(values) < count:
            return Trial(settings, failure=f"{name} was not measured, or is censored")
        medians[name] = median(values)
    return Trial(settings, medians)


def _optuna() -> Any:  # noqa: ANN401 - an optional library
    try:
        import optuna  # noqa: PLC0415 - an optional library
    except ImportError as error:
        raise ImportError("tuning needs Optuna: pip install optuna") from error
    return optuna


def _quietly(create: Any) -> Any:  # noqa: ANN401 - of an optional library
    """Call a function without Optuna's messages, which are a line for each study."""
    logging = _optuna().logging
    before = logging.get_verbosity()
    logging.set_verbosity(logging.WARNING)
    try:
        return create()
    finally:
        logging.set_verbosity(before)
