"""Sweeps: a scenario with every combination of settings, on an executor."""

from __future__ import annotations

import functools
import json
import os
import queue
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, overload

from apus import _native
from apus._metrics import default_metrics, titled
from apus._points import Plan, SweepPoint, check_effect, plan, product, run_point
from apus._progress import Reporter
from apus._toml import assignments
from apus.errors import RunError
from apus.plot import SweepPlots

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    from apus._types import Progress, ReadOptions, RunOptions, Settings, Value
    from apus.scenarios import Scenario

_TICK_S = 0.05
"""Real time between two reports of the progress."""
_SHOWN = 5
"""Maximum number of failures in a message."""


class Client(Protocol):
    """A client of a cluster that has an executor, such as `dask.distributed.Client`."""

    def get_executor(self, *, pure: bool) -> Executor:
        """Return the executor."""


class SweepError(RunError):
    """Points of a sweep failed, or the executor lost them."""

    def __init__(self, message: str, sweep: Sweep) -> None:
        super().__init__(message)
        self.sweep = sweep
        """The sweep with all other points."""


class SweepInterrupted(KeyboardInterrupt):
    """The user ended a sweep early (Ctrl-C)."""

    def __init__(self, message: str, sweep: Sweep) -> None:
        super().__init__(message)
        self.sweep = sweep
        """The sweep with the points that have ended."""


class _Stopped(BaseException):
    """Ends a run of a sweep that was cancelled."""


class Sweep(Sequence[SweepPoint]):
    """The points of a sweep in a fixed order, with the results of those that have ended.

    The points are ordered by their settings, of which the last varies fastest, then by variant of
    the scenario, then by seed. The order and the results do not depend on the executor.
    """

    def __init__(self, planned: Plan, store: _native.SweepStore | None) -> None:
        self._plan = planned
        self._points = list(planned.points)
        self._store = store
        self._reused = 0
        self._done = 0
        self._lost: BaseException | None = None
        self._ended = threading.Event()
        self._stop = threading.Event()
        self._queue: queue.SimpleQueue[tuple[int, Future[tuple[str | None, str | None]]] | None]
        self._queue = queue.SimpleQueue()
        self._futures: list[Future[tuple[str | None, str | None]]] = []
        if store is not None:
            for place, point in enumerate(self._points):
                if (summary := store.summary(place)) is not None:
                    self._points[place] = replace(point, json=summary)
                    self._reused += 1
            self._done = self._reused

    # Results

    @property
    def done(self) -> int:
        """Number of points that have a result."""
        return self._done

    @property
    def reused(self) -> int:
        """Number of points that an earlier call finished."""
        return self._reused

    @property
    def running(self) -> bool:
        """Whether the sweep is still running."""
        return not self._ended.is_set()

    @property
    def lost(self) -> BaseException | None:
        """Reason why the executor ended early; `None` if it did not."""
        return self._lost

    @property
    def failures(self) -> list[SweepPoint]:
        """The points whose runs failed; their `failure` is the reason."""
        return [point for point in self._points if point.failure is not None]

    def rows(self, *metrics: str) -> list[dict[str, Any]]:
        """Return one row per point with a result, for any data library: `polars.DataFrame(rows)`.

        Args:
            metrics: Names of metrics, such as `op_latency_us.p99` (docs/outputs.md); if not given,
                the metrics that the command `apus sweep` shows, with the times of jobs first. A
                value is `None` if it was not measured or is censored.

        Raises:
            ScenarioError: A metric is unknown.

        """
        metrics = metrics or default_metrics(self._jobs())
        for name in metrics:
            titled(name)
        return [
            {
                **point.settings,
                **({} if point.variant is None else {"variant": point.variant}),
                "seed": point.seed,
                **point.metrics(*metrics),
            }
            for point in tuple(self._points)
            if point.done
        ]

    @property
    def plot(self) -> SweepPlots:
        """Charts of the points: `sweep.plot.load_curve()`."""
        return SweepPlots(self)

    @overload
    def __getitem__(self, index: int) -> SweepPoint: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[SweepPoint]: ...
    def __getitem__(self, index: int | slice) -> SweepPoint | Sequence[SweepPoint]:
        return self._points[index]

    def __len__(self) -> int:
        return len(self._points)

    def __repr__(self) -> str:
        text = f"Sweep({self._plan.file!r}): {self._count()}"
        if failed := len(self.failures):
            text += f", {failed} failed"
        return text

    def _jobs(self) -> int:
        """Return the largest number of jobs of a point with a result."""
        texts = [one.json for one in self if one.json is not None and '"jobs"' in one.json]
        return max((len(json.loads(text).get("jobs", ())) for text in texts), default=0)

    def _count(self) -> str:
        return f"{self.done} of {len(self)} points complete"

    # Execution

    def wait(self, progress: Progress = None) -> None:
        """Wait for all points.

        Args:
            progress: `True` shows a bar, `False` none; `None` shows one in terminals and notebooks.
                A function is called at intervals with the completed share, from 0 to 1, and a text.

        Raises:
            SweepError: Points failed, or the executor lost them.
            SweepInterrupted: The user ended the call (Ctrl-C).

        """
        try:
            with Reporter(progress) as reporter:
                while not self._ended.wait(_TICK_S):
                    if reporter.report is not None:
                        ended = self.done + len(self.failures)
                        reporter.report(ended / len(self), self._count())
        except KeyboardInterrupt:
            self.cancel()
            raise SweepInterrupted(f"interrupted; {self._continuation()}", self) from None
        except BaseException:
            self.cancel()
            raise
        self._raise()

    def cancel(self) -> None:
        """End the sweep: no further point begins, and existing results are kept."""
        self._stop.set()
        for future in self._futures:
            future.cancel()
        self._queue.put(None)
        self._ended.wait()

    def _continuation(self) -> str:
        kept = "kept; the same call continues" if self._store else "not kept without `out`"
        return f"{self._count()} and {kept}"

    def _raise(self) -> None:
        failed = self.failures
        texts = [f"{point.describe()}: {point.failure}" for point in failed[:_SHOWN]]
        if len(failed) > _SHOWN:
            texts.append(f"and {len(failed) - _SHOWN} more failures")
        if self._lost is not None:
            why = ": ".join(filter(None, (type(self._lost).__name__, str(self._lost))))
            texts.append(f"the executor ended early ({why}); {self._continuation()}")
        if texts:
            raise SweepError("\n".join(texts), self) from self._lost

    def start(self, executor: Executor | Client | None, how: RunOptions) -> None:
        """Begin to run the points that have no result."""
        missing = [i for i, point in enumerate(self._points) if not point.done]
        own = None
        if executor is None:
            work = [self._plan.work[i] for i in missing]
            at_once = _native.Point.at_once(work, how["max_memory"])
            # The simulator releases the interpreter's lock: threads use all cores.
            executor = own = ThreadPoolExecutor(at_once, "apus-sweep")
        elif not isinstance(executor, Executor):
            executor = executor.get_executor(pure=False)
        task = run_point
        if isinstance(executor, ThreadPoolExecutor):
            task = functools.partial(run_point, on_tick=self._tick)
        try:
            for place in missing:
                future = executor.submit(task, self._plan.work[place], how)
                self._futures.append(future)
                future.add_done_callback(functools.partial(self._on_end, place))
        except (BrokenExecutor, RuntimeError) as error:
            # A pool that lost a process, or one that was shut down, takes no more points.
            self._lost = error
        count = len(self._futures)
        threading.Thread(target=self._collect, args=(count, own), daemon=True).start()

    def _tick(self) -> None:
        if self._stop.is_set():
            raise _Stopped

    def _on_end(self, place: int, future: Future[tuple[str | None, str | None]]) -> None:
        self._queue.put((place, future))

    def _collect(self, count: int, own: Executor | None) -> None:
        """Take the results of `count` points."""
        try:
            for _ in range(count):
                ended = self._queue.get()
                if ended is None:
                    break
                self._take(*ended)
            if self._store is not None:
                self._store.write()
        except BaseException as error:  # noqa: BLE001 - `wait` raises it in the user's thread
            self._lost = self._lost or error
            for future in self._futures:
                future.cancel()
        finally:
            if own is not None:
                own.shutdown()
            self._ended.set()

    def _take(self, place: int, future: Future[tuple[str | None, str | None]]) -> None:
        try:
            summary, failure = future.result()
        except (CancelledError, KeyboardInterrupt, _Stopped) as error:
            if not self._stop.is_set():
                # Not by this sweep: the executor was shut down, or a process of it interrupted.
                self._lost = self._lost or error
            return
        except BrokenExecutor as error:
            self._lost = error
            return
        except Exception as error:  # noqa: BLE001 - whatever a worker or a cluster reports
            summary, failure = None, f"{type(error).__name__}: {error}"
        point = self._points[place]
        self._points[place] = (
            replace(point, failure=failure) if summary is None else replace(point, json=summary)
        )
        self._done += summary is not None
        if self._store is not None:
            self._store.keep(place, self._plan.work[place], summary, failure)


def sweep(
    scenario: str | os.PathLike[str] | Scenario,
    vary: Mapping[str, Iterable[Value]],
    *,
    seeds: int | Iterable[int] = 1,
    executor: Executor | Client | None = None,
    out: str | os.PathLike[str] | None = None,
    set: Settings | None = None,  # noqa: A002 - the name of the command's option
    variant: str | None = None,
    quick: bool = False,
    watchdog: str = "1s",
    max_memory: str | None = None,
    progress: Progress = None,
    wait: bool = True,
) -> Sweep:
    """Run a scenario with every combination of settings, on all cores or on an executor.

    Args:
        scenario: A scenario file, the name of a built-in scenario, or a `Scenario`.
        vary: Settings by dotted key, each with its values:
            `{"algorithm.base_target": ["20us", "30us"]}`.
        seeds: Number of seeds from the scenario's own upwards, or the seeds: `range(5)`. At most
            10,000.
        executor: Executor of the points: any `concurrent.futures.Executor`, or a Dask client. If
            not given, the points run on all cores of this machine. Processes of an executor need
            the same build of apus; algorithms in Python are sent to them.
        out: Directory that stores each point as soon as it has ended. A stored point is identified
            by its effective configuration, the build of apus and the code of algorithms in Python.
            If the call is repeated, it runs no finished point again. The files are those of the
            command `apus sweep`: `sweep.csv` grows during the sweep.
        set: Settings that replace those of the scenario in all runs, by dotted key.
        variant: Run this variant only.
        quick: Run the shortened version of the scenario.
        watchdog: End a run in which no packet is delivered for this simulated time while ops are
            outstanding; "off" disables this check.
        max_memory: Refuse a run with a larger memory estimate and, without `executor`, limit the
            sum of parallel runs to this size; the available memory of this machine if not given.
        progress: `True` shows a bar, `False` none; `None` shows one in terminals and notebooks. A
            function is called at intervals with the completed share, from 0 to 1, and a text.
        wait: Return when all points have ended. Otherwise return at once: the results appear in the
            sweep as the points end, and `Sweep.wait` waits for all.

    Raises:
        ScenarioError: The scenario, a setting or an argument is wrong. Nothing was run.
        SweepError: Points failed, or the executor lost them; `sweep` has the other points.
        SweepInterrupted: The user ended the call (Ctrl-C); `sweep` has the points that have ended.

    """
    fixed = set or {}
    read: ReadOptions = {
        "set": assignments(fixed),
        "seed": None,
        "variant": variant,
        "quick": quick,
        "max_memory": max_memory,
    }
    how: RunOptions = {"threads": None, "watchdog": watchdog, "max_memory": max_memory}
    check_effect(vary, fixed, "vary")
    planned = plan(scenario, read, product(vary), seeds)
    started = begin(planned, executor, out, how)
    if wait:
        started.wait(progress)
    return started


def begin(
    planned: Plan,
    executor: Executor | Client | None,
    out: str | os.PathLike[str] | None,
    how: RunOptions,
) -> Sweep:
    """Begin to run the points of a plan that have no result."""
    store = None
    if out is not None:
        points = list(zip(planned.texts, planned.work, strict=True))
        store = _native.SweepStore.open(os.fspath(out), planned.file, planned.axes, points)
    started = Sweep(planned, store)
    started.start(executor, how)
    return started
