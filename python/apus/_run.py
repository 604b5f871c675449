"""Running scenarios."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from apus import _native
from apus._progress import Reporter
from apus._result import Result
from apus._toml import assignments
from apus.errors import Interrupted, RunError, ScenarioError
from apus.scenarios import Scenario

if TYPE_CHECKING:
    from apus._types import Progress, ReadOptions, RunOptions, Settings


class ApusWarning(UserWarning):
    """A warning about a flow that made no progress for some time."""


def run(
    scenario: str | os.PathLike[str] | Scenario,
    *,
    set: Settings | None = None,  # noqa: A002 - the name of the command's option
    seeds: int = 1,
    seed: int | None = None,
    variant: str | None = None,
    quick: bool = False,
    threads: int | None = None,
    watchdog: str = "1s",
    max_memory: str | None = None,
    record: bool = True,
    progress: Progress = None,
) -> Result:
    """Run a scenario and return its results.

    Args:
        scenario: A scenario file, the name of a built-in scenario, or a `Scenario`.
        set: Settings that replace those of the scenario, by dotted key:
            `{"algorithm.base_target": "50us"}`.
        seeds: Number of seeds, from `seed` upwards, at most 10,000.
        seed: First seed of all random streams, at most 2^53; that of the scenario if not given.
        variant: Run this variant only.
        quick: Run the shortened version of the scenario.
        threads: Total number of threads, at most one per core. If not given, each run has one
            thread, and there are as many runs at a time as cores. The results do not depend on this
            number.
        watchdog: End a run in which no packet is delivered for this simulated time while ops are
            outstanding; "off" disables this check.
        max_memory: Refuse a run with a larger memory estimate, and limit the sum of parallel runs
            to this size, like "32GiB"; the available memory of the machine if not given.
        record: Keep the tables of the results, in addition to the summary.
        progress: `True` shows a bar, `False` none; `None` shows one in terminals and notebooks. A
            function is called at intervals with the completed share, from 0 to 1, and a text.

    Raises:
        ScenarioError: The scenario or an argument is wrong. Nothing was run.
        RunError: A run failed, or made no progress; `result` has the other runs and, for a run
            without progress, everything measured until it ended.
        Interrupted: The user ended the call (Ctrl-C); `result` has everything measured so far.

    """
    read = read_options(set, seed=seed, variant=variant, quick=quick, max_memory=max_memory)
    how: RunOptions = {
        "threads": threads,
        "watchdog": watchdog,
        "max_memory": max_memory,
    }
    opened = opened_with(scenario, read)
    with Reporter(progress) as reporter:
        outcome = opened.run(seeds, record, how, reporter.report)
    return finished(outcome, len(opened.variants) * seeds)


def reproduce(
    experiment: str | os.PathLike[str],
    *,
    seeds: int | None = None,
    quick: bool = False,
    threads: int | None = None,
    max_memory: str | None = None,
    record: bool = False,
    progress: Progress = None,
) -> Result:
    """Run an experiment and compare its numbers with its checks: `result.checks`.

    Args:
        experiment: Name of a built-in experiment, or a scenario file (`.toml`) with checks.
        seeds: Number of seeds, at most 10,000; 5 if not given, and 1 with `quick`.
        quick: Run the shortened version of the scenario.
        threads: See `apus.run`.
        max_memory: See `apus.run`.
        record: Keep the tables of the results, in addition to the summaries.
        progress: See `apus.run`.

    Raises:
        ScenarioError: The experiment is unknown or has no checks. Nothing was run.
        RunError: A run failed, or made no progress; `result` has the other runs and, for a run
            without progress, everything measured until it ended.
        Interrupted: The user ended the call (Ctrl-C); `result` has everything measured so far.
    """
    read = read_options(None, quick=quick, max_memory=max_memory)
    how: RunOptions = {"threads": threads, "watchdog": "1s", "max_memory": max_memory}
    opened = _native.Scenario.open_experiment(os.fspath(experiment), read)
    count = (1 if quick else 5) if seeds is None else seeds
    with Reporter(progress) as reporter:
        outcome = opened.run(count, record, how, reporter.report)
    return finished(outcome, len(opened.variants) * count)


class Estimate(NamedTuple):
    """Events and time of a run on one thread, estimated from its first 300,000 events.

    The drain ends when the last op ends, which only the run can show.
    """

    events: int
    """Events until `duration`."""
    seconds: float
    """Real time until `duration` on this machine."""
    drain_events: int
    """Maximum number of events of the drain: if it lasts until its limit."""
    drain_seconds: float
    """Maximum real time of the drain on this machine."""
    measured: bool
    """Whether the run ended within its first 300,000 events. In that case `events` and `seconds`
    are those of the whole run, including its drain."""


@dataclass(frozen=True)
class PlannedRun:
    """A run of a scenario that was checked but not executed."""

    name: str
    """Name of the scenario, and of its variant."""
    seed: int
    """Seed of all random number streams."""
    duration_s: float
    """Simulated time, warm-up included and drain excluded."""
    memory_bytes: int
    """Estimate of the memory that the run takes on one thread."""
    effective: str = field(repr=False)
    """The effective configuration: a scenario with every default resolved."""
    estimate: Estimate | None = None
    """Estimate of the time of the run, if it was requested."""


def validate(
    scenario: str | os.PathLike[str] | Scenario,
    *,
    set: Settings | None = None,  # noqa: A002 - the name of the command's option
    seed: int | None = None,
    variant: str | None = None,
    quick: bool = False,
    max_memory: str | None = None,
    estimate: bool = True,
) -> list[PlannedRun]:
    """Check a scenario without running it, and return its runs.

    Args:
        scenario: See `apus.run`.
        set: See `apus.run`.
        seed: See `apus.run`.
        variant: See `apus.run`.
        quick: See `apus.run`.
        max_memory: See `apus.run`.
        estimate: Estimate the time of each run by simulating its beginning, which takes a few
            hundredths of a second.

    Raises:
        ScenarioError: The scenario or an argument is wrong, or a run fails at its beginning.
    """
    read = read_options(set, seed=seed, variant=variant, quick=quick, max_memory=max_memory)
    opened = opened_with(scenario, read)
    runs = [PlannedRun(*run) for run in opened.plan()]
    if not estimate:
        return runs
    times = [Estimate(*time) for time in opened.estimate()]
    return [replace(run, estimate=time) for run, time in zip(runs, times, strict=True)]


def read_options(
    set: Settings | None,  # noqa: A002 - the name of the command's option
    *,
    seed: int | None = None,
    variant: str | None = None,
    quick: bool = False,
    max_memory: str | None = None,
) -> ReadOptions:
    """Return how the native module reads a scenario."""
    return {
        "set": assignments(set),
        "seed": seed,
        "variant": variant,
        "quick": quick,
        "max_memory": max_memory,
    }


def finished(outcome: _native.Outcome, planned: int) -> Result:
    """Return the results of runs, or raise the error that ended them."""
    for text in outcome.warnings:
        warnings.warn(text, ApusWarning, stacklevel=3)
    result = Result(outcome)
    raised = outcome.raised
    if isinstance(raised, KeyboardInterrupt):
        text = interruption(result, planned, len(outcome.failures))
        raise Interrupted("\n".join([text, *outcome.failures]), result) from raised
    if raised is not None:
        raise raised
    if outcome.failures:
        raise RunError("\n".join(outcome.failures), result) from outcome.cause
    return result


def opened_with(
    scenario: str | os.PathLike[str] | Scenario, options: ReadOptions
) -> _native.Scenario:
    """Return a scenario that was read and checked."""
    if not isinstance(scenario, Scenario):
        return _native.Scenario.open(os.fspath(scenario), options)
    try:
        return _native.Scenario.read("Scenario", scenario.to_toml(), options)
    except ScenarioError as error:
        raise scenario.located(error) from None


def interruption(result: Result, planned: int, failed: int) -> str:
    """Return the message of an interrupted call of `planned` runs, `failed` of which failed."""
    early = [run.name for run in result if run.interrupted]
    text = f"interrupted; results are partial: {len(result) - len(early)} runs complete"
    if early:
        text += f", ended early: {', '.join(early)}"
    for count, what in ((failed, "failed"), (planned - len(result) - failed, "not started")):
        if count:
            text += f", {count} {what}"
    return text
