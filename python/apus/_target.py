"""The base target of Swift for a user's own traffic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from apus import _native
from apus._progress import Reporter
from apus._run import opened_with, read_options
from apus._tune import TuneError, written

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from apus._types import Progress, RunOptions, Settings
    from apus.scenarios import Scenario


class TargetTuning:
    """The smallest base target that keeps the throughput, with the curves that show it."""

    def __init__(self, data: str, text: str) -> None:
        self._data: Mapping[str, Any] = json.loads(data)
        self._text = text

    @property
    def base_target(self) -> str | None:
        """The `base_target` to set; `None` if no value that was tried keeps the throughput."""
        return _time(self._data["base_target_us"])

    @property
    def fs_range(self) -> str | None:
        """The `fs_range` to set with it; `None` if no value that was tried keeps the goodput."""
        return _time(self._data["fs_range_us"])

    @property
    def why(self) -> list[str]:
        """Reasons for these values, with numbers of the curves."""
        return list(self._data["why"])

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per value that was tried, with the medians of metrics.

        `parameter` is the curve of the row: `base_target` or `fs_range`. `fails` is the reason why
        the value must not be chosen. A median is `None` if it is censored. The columns `..._lower`
        and `..._upper` of such a metric have the bounds; an upper bound of `None` is unbounded.
        Data libraries read the rows directly.
        """
        samples = [
            (name, sample)
            for name in ("base_target", "fs_range")
            for sample in self._data[f"{name}_curve"] or ()
        ]
        censored = {
            metric
            for _, sample in samples
            for metric, median in sample["medians"].items()
            if isinstance(median, dict)
        }
        return [
            {
                "parameter": name,
                **{key: sample[key] for key in ("value_us", "keeps", "fails")},
                **{
                    key: value
                    for metric, median in sample["medians"].items()
                    for key, value in _columns(metric, median, bounds=metric in censored)
                },
            }
            for name, sample in samples
        ]

    def to_dict(self) -> Mapping[str, Any]:
        """Return the result as in tune.json."""
        return self._data

    def __repr__(self) -> str:
        return self._text


def _columns(
    metric: str, median: float | Mapping[str, float | None] | None, *, bounds: bool
) -> Iterator[tuple[str, float | None]]:
    """Yield the columns of a median, which is an object of its bounds if it is censored."""
    if not isinstance(median, float | int | None):
        yield metric, None
        yield from ((f"{metric}_{side}", median[side]) for side in ("lower", "upper"))
        return
    yield metric, median
    if bounds:
        yield from ((f"{metric}_{side}", median) for side in ("lower", "upper"))


def _time(us: float | None) -> str | None:
    return None if us is None else written(us, "us")


def tune_target(
    scenario: str | os.PathLike[str] | Scenario,
    *,
    set: Settings | None = None,  # noqa: A002 - the name of the command's option
    variant: str | None = None,
    algorithm: str | None = None,
    keep: float = 98.0,
    seeds: int = 3,
    threads: int | None = None,
    watchdog: str = "1s",
    max_memory: str | None = None,
    progress: Progress = None,
) -> TargetTuning:
    """Find the smallest base target of Swift that keeps the throughput, like `apus tune`.

    After that, find the smallest flow-scaling range for this base target. `apus.tune` searches any
    parameters.

    Args:
        scenario: A scenario file, the name of a built-in scenario, or a `Scenario`.
        set: Settings of all runs, by dotted key.
        variant: The variant of the scenario, if it has several.
        algorithm: Label of the algorithm, if several algorithms have a base target.
        keep: Minimum goodput, in percent of the best goodput.
        seeds: Number of seeds per value, from the scenario's own seed upwards; the medians are
            compared.
        threads: See `apus.run`.
        watchdog: See `apus.run`.
        max_memory: See `apus.run`.
        progress: See `apus.run`.

    Raises:
        ScenarioError: The scenario or an argument is wrong. Nothing was run.
        TuneError: A run failed, or made no progress.
        KeyboardInterrupt: The user ended the call (Ctrl-C).
    """
    read = read_options(set, variant=variant, max_memory=max_memory)
    how: RunOptions = {"threads": threads, "watchdog": watchdog, "max_memory": max_memory}
    opened = opened_with(scenario, read)
    with Reporter(progress) as reporter:
        data, text = _native.tune_target(
            opened,
            {"set": read["set"], "algorithm": algorithm, "keep": keep, "seeds": seeds},
            how,
            reporter.report,
        )
    if data is None:
        raise TuneError(text)
    return TargetTuning(data, text)
