"""Sweeps on a cluster of Dask: the loss of a worker, and a kill of the whole sweep."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

import apus

SCENARIO = """\
duration = "2ms"
topology = { kind = "star", hosts = 4, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "incast"
size = "64kB"
"""
# Other packages close sockets and loops late.
pytestmark = pytest.mark.filterwarnings("default")
VARY: dict[str, list[Any]] = {"topology.rate": ["100Gbps", "25Gbps"], "topology.hosts": [3, 4, 5]}
SEEDS = range(20)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "incast.toml"
    file.write_text(SCENARIO)
    return file


@pytest.fixture
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_a_lost_worker_changes_no_row(scenario: Path, client: Client, tmp_path: Path) -> None:
    sequential = apus.sweep(scenario, VARY, seeds=SEEDS, out=tmp_path / "here")
    processes = list(client.run(os.getpid).values())
    assert len(set(processes)) == 3
    out = tmp_path / "there"
    sweep = apus.sweep(scenario, VARY, seeds=SEEDS, executor=client, out=out, wait=False)
    while sweep.done < 10:
        time.sleep(0.005)
    os.kill(processes[0], signal.SIGKILL)
    assert sweep.running
    sweep.wait(progress=False)
    assert list(sweep) == list(sequential)
    assert (out / "sweep.csv").read_bytes() == (tmp_path / "here" / "sweep.csv").read_bytes()


KILLED = """\
import sys
from distributed import Client, LocalCluster
import apus

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        apus.sweep(sys.argv[1], {"topology.hosts": [3, 4, 5, 6]}, seeds=50,
                   set={"duration": "10ms"}, executor=Client(cluster), out=sys.argv[2])
"""


def test_a_killed_sweep_continues_without_repeating_a_point(
    scenario: Path, client: Client, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    program = tmp_path / "killed.py"
    program.write_text(KILLED)
    # A group of its own: its workers end with it.
    process = subprocess.Popen(
        [sys.executable, str(program), str(scenario), str(out)], start_new_session=True
    )

    def kept() -> dict[Path, int]:
        found = (out / "runs").glob("[0-9a-f]" * 16 + ".json")
        return {path: path.stat().st_mtime_ns for path in found}

    while process.poll() is None and len(kept()) < 20:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = kept()
    assert 20 <= len(before) < 200
    sweep = apus.sweep(
        scenario,
        {"topology.hosts": [3, 4, 5, 6]},
        seeds=50,
        set={"duration": "10ms"},
        executor=client,
        out=out,
    )
    assert sweep.reused == len(before)
    assert sweep.done == 200
    after = kept()
    assert len(after) == 200
    assert before == {path: after[path] for path in before}


def test_a_version_of_a_worker_that_differs_is_a_failure(client: Client) -> None:
    from apus import _native  # noqa: PLC0415

    restore = client.submit(_native.Point.restore, "0.0.0", "", None, "")
    with pytest.raises(apus.ScenarioError, match="use one build in all processes"):
        restore.result()


def test_a_class_of_a_function_is_sent_to_workers(scenario: Path, client: Client) -> None:
    """Such as one of a notebook: Dask's processes cannot import it."""

    class Halving(apus.OwnAlgorithm):
        """A packet more per window, and half of them after a loss."""

        def start(self, flow: apus.FlowInfo) -> None:
            self.window = 1.0

        def on_ack(self, event: apus.AckEvent) -> None:
            self.window += event.acked_packets / self.window

        def on_loss(self, event: apus.LossEvent) -> None:
            self.window = max(1.0, self.window / 2)

        def on_timeout(self, event: apus.TimeoutEvent) -> None:
            self.window = 1.0

        def allowance(self) -> float | apus.Allowance:
            return self.window

    apus.algorithm("halving", Halving)
    text = scenario.read_text().replace('name = "swift"', 'name = "halving"')
    scenario.write_text(text)
    vary = {"topology.hosts": [3, 4]}
    assert list(apus.sweep(scenario, vary, executor=client)) == list(apus.sweep(scenario, vary))
