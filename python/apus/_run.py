"""Running scenarios."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

from apus import _native
from apus._progress import Reporter
from apus._result import Result, Run
from apus._toml import assignments
from apus.errors import Interrupted, RunError, ScenarioError
from apus.scenarios import Scenario

if TYPE_CHECKING:
    from apus._types import Progress, ReadOptions, RunOptions, Settings


class ApusWarning(UserWarning):
    """A report of a flow that made no progress for a time."""


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
        seeds: Number of seeds, from `seed` upwards.
        seed: First seed of all random streams; that of the scenario if not given.
        variant: Run this variant only.
        quick: Run the shortened version of the scenario.
        threads: Total threads, at most one per core. Without it each run has one thread, and as
            many run at a time as there are cores. The results do not depend on the number.
        watchdog: End a run in which no packet is delivered for this simulated time while ops are
            outstanding; "off" disables this check.
        max_memory: Refuse a run with a larger memory estimate, and limit parallel runs to this sum,
            like "32GiB"; the available memory of the machine if not given.
        record: Keep the tables of the results, besides the summary.
        progress: `True` shows a bar, `False` none; `None` shows one in terminals and notebooks. A
            function is called at intervals with the share that is done, from 0 to 1, and a text.

    Raises:
        ScenarioError: The scenario or an argument is wrong. Nothing was run.
        RunError: A run failed, or made no progress; `result` has the others.
        Interrupted: The user ended the call (Ctrl-C); `result` has what was measured so far.

    """
    read: ReadOptions = {
        "set": assignments(set),
        "seed": seed,
        "variant": variant,
        "quick": quick,
        "max_memory": max_memory,
    }
    how: RunOptions = {
        "threads": threads,
        "watchdog": watchdog,
        "max_memory": max_memory,
    }
    opened = opened_with(scenario, read)
    with Reporter(progress) as reporter:
        outcome = opened.run(seeds, record, how, reporter.report)
    for text in outcome.warnings:
        warnings.warn(text, ApusWarning, stacklevel=2)
    result = Result([Run(one) for one in outcome.runs])
    raised = outcome.raised
    if isinstance(raised, KeyboardInterrupt):
        raise Interrupted(interruption(result, len(opened.variants) * seeds), result) from raised
    if raised is not None:
        raise raised
    if outcome.failures:
        raise RunError("\n".join(outcome.failures), result)
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


def interruption(result: Result, planned: int) -> str:
    """Return the message of an interrupted call of `planned` runs."""
    early = [run.name for run in result if run.interrupted]
    text = f"interrupted; results are partial: {len(result) - len(early)} runs complete"
    if early:
        text += f", ended early: {', '.join(early)}"
    if missing := planned - len(result):
        text += f", {missing} not started"
    return text
