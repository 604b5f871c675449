"""Measure what a sweep costs beyond its simulations.

Run 1,000 points of about 100 ms each on all cores, by default in threads of this process, and print
the share of the cores' time that is spent within simulations, and the rest per point. The machine
must be idle. `--dask` uses a local cluster of Dask with a process per core.

Usage: python python/tools/sweep_overhead.py [--dask] [--points N] [--milliseconds N]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCENARIO = """\
duration = "1ms"
topology = { kind = "star", hosts = 17, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "incast"
size = "64kB"
"""


def timed(file: str, task: Callable[..., Any], *args: Any) -> Any:
    """Call a function and append its duration to a file."""
    start = time.perf_counter()
    result = task(*args)
    line = f"{time.perf_counter() - start}\n"
    # Lines of different processes are not mixed, because each line is a single write in append
    # mode.
    handle = os.open(file, os.O_WRONLY | os.O_APPEND)
    os.write(handle, line.encode())
    os.close(handle)
    return result


class Timed(Executor):
    """An executor that notes how long each of its tasks takes."""

    def __init__(self, inner: Executor, file: str) -> None:
        self.inner = inner
        self.file = file

    def submit(self, fn: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        """Run a task on the inner executor."""
        return self.inner.submit(timed, self.file, fn, *args)


@contextlib.contextmanager
def executor(cores: int, *, dask: bool) -> Iterator[Executor]:
    """Open the executor to measure."""
    if not dask:
        with ThreadPoolExecutor(cores) as pool:
            yield pool
        return
    from distributed import Client, LocalCluster  # noqa: PLC0415 - only with --dask

    with (
        LocalCluster(n_workers=cores, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client.get_executor(pure=False)


def duration_of(scenario: Path, seconds: float) -> str:
    """Return the simulated time whose simulation takes these seconds."""
    start = time.perf_counter()
    apus.run(scenario, set={"duration": "100ms"}, record=False, progress=False)
    return f"{100e3 * seconds / (time.perf_counter() - start):.0f}us"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Cost of a sweep beyond its simulations")
    parser.add_argument("--dask", action="store_true", help="a local cluster of Dask")
    parser.add_argument("--points", type=int, default=1000, help="number of points")
    parser.add_argument("--milliseconds", type=float, default=100, help="length of a point")
    chosen = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder, executor(cores, dask=chosen.dask) as pool:
        scenario = Path(folder, "incast.toml")
        scenario.write_text(SCENARIO)
        log = Path(folder, "log")
        log.touch()
        duration = duration_of(scenario, chosen.milliseconds / 1000)
        # The workers load the package before the measurement.
        apus.sweep(scenario, {"topology.hosts": [3]}, seeds=2 * cores, executor=pool)
        start = time.perf_counter()
        apus.sweep(
            scenario,
            {"topology.hosts": [16, 17], "algorithm.base_target": ["20us", "25us"]},
            seeds=chosen.points // 4,
            set={"duration": duration},
            executor=Timed(pool, str(log)),
            out=Path(folder, "out"),
            progress=False,
        )
        wall = time.perf_counter() - start
        runs = [float(line) for line in log.read_text().split()]
    inside = sum(runs)
    print(
        f"{len(runs)} points of {1e3 * inside / len(runs):.1f} ms on {cores} cores in {wall:.1f} s"
    )
    print(f"share of the cores' time within simulations: {inside / (wall * cores):.1%}")
    print(f"rest per point: {1e3 * (wall * cores - inside) / len(runs):.2f} ms")


if __name__ == "__main__":
    main()
