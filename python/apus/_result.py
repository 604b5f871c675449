"""Results of runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from apus._checks import Check, Shown
from apus._native import Table
from apus.plot import Plots
from apus.summary import Summary

if TYPE_CHECKING:
    from apus import _native


class Run:
    """The results of one run.

    The tables are Arrow streams, which data libraries read directly: `polars.DataFrame(run.ops)`,
    `pyarrow.table(run.ops)`, `pandas.DataFrame.from_arrow(run.ops)`.
    """

    def __init__(self, native: _native.Run) -> None:
        self._native = native
        self._summary: Summary | None = None

    @property
    def name(self) -> str:
        """Name of the scenario, and of its variant."""
        return self._native.name

    @property
    def variant(self) -> str | None:
        """Name of the variant; `None` if the scenario has none."""
        return self._native.variant

    @property
    def value(self) -> float | None:
        """Value of the variant, in microseconds, Gb/s or bytes if it has a unit."""
        return self._native.value

    @property
    def seed(self) -> int:
        """Seed of all random number streams."""
        return self._native.seed

    @property
    def interrupted(self) -> bool:
        """Whether the run ended early."""
        return self._native.interrupted

    @property
    def summary(self) -> Summary:
        """All numbers of the run."""
        if self._summary is None:
            self._summary = Summary(json.loads(self._native.summary_json()))
        return self._summary

    @property
    def cost(self) -> dict[str, float]:
        """Cost of the run on this machine: real time, threads, events per second."""
        return dict(json.loads(self._native.cost_json()))

    @property
    def ops(self) -> Table:
        """One row per op: its times, latency and slowdown."""
        return Table.of([self._native], "ops", keys=False)

    @property
    def job_ops(self) -> Table:
        """One row per operation of a job: its rank, kind, peer and times."""
        return Table.of([self._native], "job_ops", keys=False)

    @property
    def flows(self) -> Table:
        """One row per flow (connection): its goodput, losses and RTTs."""
        return Table.of([self._native], "flows", keys=False)

    @property
    def ports(self) -> Table:
        """One row per egress port: its throughput, queue and losses."""
        return Table.of([self._native], "ports", keys=False)

    @property
    def samples(self) -> Table:
        """Flows over time: windows, rates and RTTs."""
        return Table.of([self._native], "samples", keys=False)

    @property
    def sample_percentiles(self) -> Table:
        """All flows over time: percentiles of the sampled numbers."""
        return Table.of([self._native], "sample_percentiles", keys=False)

    @property
    def port_samples(self) -> Table:
        """Ports over time: queues and throughput."""
        return Table.of([self._native], "port_samples", keys=False)

    @property
    def workloads(self) -> Table:
        """One row per workload: its share of ops and goodput."""
        return Table.of([self._native], "workloads", keys=False)

    @property
    def faults(self) -> Table:
        """One row per link fault, and per flow that changed its path."""
        return Table.of([self._native], "faults", keys=False)

    @property
    def plot(self) -> Plots:
        """Charts of the run: `run.plot.rates()`."""
        return Plots([self])

    def __repr__(self) -> str:
        return self._native.text()


class Result(Sequence[Run]):
    """The results of a call: its runs, ordered by seed and, for each seed, by variant.

    A table has the rows of all runs. The first columns are the variant and the seed of the run.
    """

    def __init__(self, outcome: _native.Outcome) -> None:
        self._runs = tuple(Run(run) for run in outcome.runs)
        checks = json.loads(outcome.checks_json or '{"checks": [], "shown": []}')
        self._checks_text = outcome.checks_text
        self.checks: tuple[Check, ...] = tuple(Check(check) for check in checks["checks"])
        """Checks of the scenario, over the seeds for which every run is complete."""
        self.shown: tuple[Shown, ...] = tuple(Shown(shown) for shown in checks["shown"])
        """Numbers that the scenario shows without a band."""

    @property
    def passes(self) -> bool:
        """Whether every check passes, or differs as the scenario documents."""
        return all(check.passes for check in self.checks)

    @property
    def summary(self) -> Summary:
        """All numbers of the only run. If there are several runs, use `result[0].summary`."""
        if len(self._runs) == 1:
            return self._runs[0].summary
        raise ValueError(
            f"there are {len(self._runs)} runs, each with a summary of its own: result[0].summary"
        )

    def _table(self, name: str) -> Table:
        return Table.of([run._native for run in self._runs], name, keys=True)  # noqa: SLF001

    @property
    def ops(self) -> Table:
        """One row per op: its times, latency and slowdown."""
        return self._table("ops")

    @property
    def job_ops(self) -> Table:
        """One row per operation of a job: its rank, kind, peer and times."""
        return self._table("job_ops")

    @property
    def flows(self) -> Table:
        """One row per flow (connection): its goodput, losses and RTTs."""
        return self._table("flows")

    @property
    def ports(self) -> Table:
        """One row per egress port: its throughput, queue and losses."""
        return self._table("ports")

    @property
    def samples(self) -> Table:
        """Flows over time: windows, rates and RTTs."""
        return self._table("samples")

    @property
    def sample_percentiles(self) -> Table:
        """All flows over time: percentiles of the sampled numbers."""
        return self._table("sample_percentiles")

    @property
    def port_samples(self) -> Table:
        """Ports over time: queues and throughput."""
        return self._table("port_samples")

    @property
    def workloads(self) -> Table:
        """One row per workload: its share of ops and goodput."""
        return self._table("workloads")

    @property
    def faults(self) -> Table:
        """One row per link fault, and per flow that changed its path."""
        return self._table("faults")

    @property
    def plot(self) -> Plots:
        """Charts of the runs: `result.plot.rates()`."""
        return Plots(self._runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Run]: ...
    def __getitem__(self, index: int | slice) -> Run | Sequence[Run]:
        return self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        if self._checks_text:
            return self._checks_text
        return "\n".join(map(repr, self._runs))
