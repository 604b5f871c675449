"""The points of a sweep, and their execution by a worker."""

from __future__ import annotations

import copyreg
import functools
import importlib
import itertools
import json
import operator
import pickle
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from apus import _native
from apus._code import hash_of
from apus._metrics import value_of
from apus._own import OwnAlgorithm, algorithm
from apus._run import opened_with
from apus._toml import assignments
from apus.errors import ScenarioError
from apus.scenarios import Scenario
from apus.summary import Summary

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from apus._types import ReadOptions, RunOptions, Value


_MAX_SEEDS = 10_000
"""Largest number of seeds, as for the command `apus sweep`."""
_MAX_SEED = 2**53
"""Largest seed, as in scenario files."""


@dataclass(frozen=True)
class SweepPoint:
    """A run of a sweep: its settings and, once it has ended, its result."""

    settings: Mapping[str, Value]
    """The values of the settings that the sweep varies."""
    variant: str | None
    """Variant of the scenario; `None` if it has none."""
    seed: int
    """Seed of all random number streams."""
    json: str | None = field(default=None, repr=False)
    """All numbers of the run as JSON; `None` if it has not ended, or failed."""
    failure: str | None = None
    """Reason why the run failed."""

    @property
    def done(self) -> bool:
        """Whether the run has a result."""
        return self.json is not None

    @property
    def summary(self) -> Summary | None:
        """All numbers of the run; `None` if it has not ended, or failed.

        Read from `json` at each access: a sweep of many points takes less memory.
        """
        return None if self.json is None else Summary(json.loads(self.json))

    def metrics(self, *names: str) -> dict[str, float | None]:
        """Return numbers of the run; `None` for numbers not measured or censored."""
        numbers = {} if self.json is None else json.loads(self.json)
        return {name: value_of(numbers, name) for name in names}

    def metric(self, name: str) -> float | None:
        """Return a number of the run; `None` if it was not measured or is censored."""
        return self.metrics(name)[name]

    def describe(self) -> str:
        """Return the settings in one line."""
        parts = [f"{key}={value}" for key, value in self.settings.items()]
        parts += [f"variant {self.variant}"] if self.variant is not None else []
        return ", ".join([*parts, f"seed {self.seed}"])


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep, in their order."""

    file: str
    """The scenario as the user names it."""
    axes: list[tuple[str, list[str]]]
    """Each varied setting, and its values as texts."""
    points: list[SweepPoint]
    texts: list[list[str]]
    """The values of the varied settings of each point, as texts."""
    work: list[_native.Point]


def product(vary: Mapping[str, Iterable[Value]]) -> list[dict[str, Value]]:
    """Return every combination of the values; the last setting varies fastest."""
    if "seed" in vary:
        raise ScenarioError("vary['seed']: write the seeds of the sweep as the argument `seeds`")
    values = {key: _values(key, given) for key, given in vary.items()}
    combinations = itertools.product(*values.values())
    return [dict(zip(values, combination, strict=True)) for combination in combinations]


def plan(
    scenario: str | os.PathLike[str] | Scenario,
    read: ReadOptions,
    combinations: Iterable[Mapping[str, Value]],
    seeds: int | Iterable[int],
) -> Plan:
    """Return all runs: all variants of each combination of settings, and all seeds of each."""
    numbers = checked_seeds(seeds)
    name, folder = _place(scenario)
    points, texts, work = [], [], []
    axes: dict[str, dict[str, None]] = {}
    for settings in combinations:
        own = assignments(settings)
        opened = opened_with(scenario, {**read, "set": [*read["set"], *own]})
        text = [_text(key, value) for key, value in settings.items()]
        for key, value in zip(settings, text, strict=True):
            axes.setdefault(key, {})[value] = None
        for run in _native.Point.of(opened, folder):
            for seed in numbers if isinstance(numbers, list) else _from(run.seed, numbers):
                points.append(SweepPoint(settings, run.variant, seed))
                texts.append(text)
                work.append(run.with_seed(seed))
    return Plan(name, [(key, list(values)) for key, values in axes.items()], points, texts, work)


def check_effect(vary: Iterable[str], fixed: Iterable[str], what: str) -> None:
    """Raise an error if a fixed setting is varied too."""
    for key in vary:
        if key in fixed:
            raise ScenarioError(
                f"set[{key!r}]: has no effect, because {what}[{key!r}] sets the value of every "
                "run; remove one of them"
            )


def _place(scenario: str | os.PathLike[str] | Scenario) -> tuple[str, str]:
    """Return the name of a scenario, and the folder of the files that it names."""
    if isinstance(scenario, Scenario):
        return "Scenario", str(Path.cwd())
    return str(scenario), str(Path(scenario).absolute().parent)


def _text(key: str, value: Value) -> str:
    """Return a value as the command line has it."""
    return assignments({key: value})[0].removeprefix(f"{key}=")


def _values(key: str, given: Iterable[Value]) -> list[Value]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ScenarioError(
            f"vary[{key!r}]: {given!r} is one value; write a list of values: [{given!r}]"
        )
    values = list(given)
    if not values:
        raise ScenarioError(f"vary[{key!r}]: has no value; write at least one")
    twice = next((v for i, v in enumerate(values) if v in values[:i]), None)
    if twice is not None:
        raise ScenarioError(f"vary[{key!r}]: the value {twice!r} is there twice; remove one")
    return values


def checked_seeds(seeds: int | Iterable[int]) -> int | list[int]:
    """Return the number of seeds, or the seeds themselves.

    Raises:
        ScenarioError: There are too many or too few seeds, or a value is not a seed.
    """
    if not isinstance(seeds, Iterable):
        if not isinstance(seeds, int) or not 1 <= seeds <= _MAX_SEEDS:
            raise ScenarioError(f"seeds={seeds!r}: must be from 1 to {_MAX_SEEDS}, or a list")
        return seeds
    numbers = [_seed(one) for one in itertools.islice(seeds, _MAX_SEEDS + 1)]
    if not numbers:
        raise ScenarioError("seeds: has no seed; write at least one")
    if len(numbers) > _MAX_SEEDS:
        raise ScenarioError(f"seeds: has more than {_MAX_SEEDS} seeds; write fewer")
    if len(set(numbers)) < len(numbers):
        raise ScenarioError(f"seeds={numbers}: a seed is there twice; remove one")
    return numbers


def _seed(given: object) -> int:
    """Return a seed as a whole number, such as one of numpy's."""
    try:
        seed = operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        seed = -1
    if not 0 <= seed <= _MAX_SEED:
        raise ScenarioError(f"seeds: {given!r} must be a whole number from 0 to 2^53")
    return seed


def _from(first: int, count: int) -> Sequence[int]:
    return range(first, first + count)


@dataclass(frozen=True)
class SentPoint:
    """A point that is sent to another process, which restores the point when it runs it.

    An error in the point is then a failure of the point. An error while the point is received would
    end the process.
    """

    arguments: tuple[str, str, str | None, str]
    """The arguments of `_native.Point.restore`."""
    algorithms: tuple[tuple[str, bytes, str], ...]
    """Name, pickled class and hash of the code of each algorithm in Python."""

    def restore(self) -> _native.Point:
        """Return the point."""
        # Two points may have classes of one name.
        with _REGISTERING:
            for name, pickled, expected in self.algorithms:
                cls = _loaded(name, pickled)
                if hash_of(cls, OwnAlgorithm) != expected:
                    raise ScenarioError(
                        f"the algorithm `{name}` ({cls.__qualname__}) differs in this process; "
                        "use the same code, and the same version of Python, in all processes"
                    )
                algorithm(name, cls)
            return _native.Point.restore(*self.arguments)

    def run(
        self, how: RunOptions, on_tick: Callable[[], None] | None
    ) -> tuple[str | None, str | None]:
        """Run the point."""
        return self.restore().run(how, on_tick)


_REGISTERING = threading.Lock()


def _send(point: _native.Point) -> tuple[type[SentPoint], tuple[object, ...]]:
    arguments, classes = point.parts()
    algorithms = tuple((name, _pickled(name, cls), code) for name, cls, code in classes)
    return SentPoint, (arguments, algorithms)


# A dump of a point is loaded as a `SentPoint`.
copyreg.pickle(_native.Point, _send)  # type: ignore[arg-type]


def _pickled(name: str, cls: type[OwnAlgorithm]) -> bytes:
    try:
        # It sends classes of notebooks and functions by value; Dask installs it.
        dumps = importlib.import_module("cloudpickle").dumps
    except ImportError:
        dumps = pickle.dumps
    try:
        data: bytes = dumps(cls)
    except Exception as error:
        raise ScenarioError(
            f"the algorithm `{name}` cannot be sent to another process ({error}); define "
            f"{cls.__qualname__} at the top level of a module, or install cloudpickle"
        ) from error
    return data


@functools.lru_cache(maxsize=64)
def _loaded(name: str, pickled: bytes) -> type[OwnAlgorithm]:
    try:
        cls: type[OwnAlgorithm] = pickle.loads(pickled)  # noqa: S301 - of the process that sweeps
    except Exception as error:
        raise ScenarioError(
            f"the algorithm `{name}` cannot be loaded in this process "
            f"({type(error).__name__}: {error}); its module must be importable in every process"
        ) from error
    return cls


def run_point(
    point: _native.Point | SentPoint, how: RunOptions, on_tick: Callable[[], None] | None = None
) -> tuple[str | None, str | None]:
    """Run a point, in any process.

    Returns the summary as JSON, or the reason why the run failed.
    """
    return point.run(how, on_tick)
