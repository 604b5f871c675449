"""Sweeps: their order, executors, stores, failures and early ends."""

import itertools
import json
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import apus
from apus import _native
from apus._points import run_point

VARY: dict[str, list[Any]] = {"topology.rate": ["100Gbps", "25Gbps"], "topology.hosts": [3, 4]}


def processes(workers: int) -> ProcessPoolExecutor:
    """Return a pool of fresh processes: a fork of a process with threads is unsafe."""
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))


class Refusal(Executor):
    """An executor for sweeps that must not run anything."""

    def submit(self, fn: Callable[..., Any], /, *_: object, **__: object) -> Future[Any]:
        """Fail."""
        raise AssertionError(f"{fn} was run")


class Counting(ThreadPoolExecutor):
    """An executor that counts its tasks."""

    tasks = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Count the task and run it."""
        self.tasks += 1
        return super().submit(fn, *args, **named)


def test_the_last_setting_varies_fastest_then_seeds(incast: Path) -> None:
    sweep = apus.sweep(incast, VARY, seeds=[7, 2])
    order = [(*point.settings.values(), point.seed) for point in sweep]
    assert order == [(r, h, s) for r in VARY["topology.rate"] for h in (3, 4) for s in (7, 2)]
    assert sweep.done == len(sweep) == 8
    assert not sweep.running


def test_points_are_the_runs_of_apus_run(incast: Path) -> None:
    for point in apus.sweep(incast, VARY, seeds=2, set={"duration": "1ms"}):
        settings = {**point.settings, "duration": "1ms"}
        run = apus.run(incast, set=settings, seed=point.seed, record=False)
        assert point.summary == run.summary


def test_times_of_jobs_are_the_first_metrics_of_rows(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text("""\
duration = "2ms"
topology = { kind = "star", hosts = 4, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "all-reduce"
size = "64kB"
""")
    slow, fast = apus.sweep(file, {"topology.rate": ["10Gbps", "100Gbps"]}).rows()
    assert list(slow)[2] == "jobs.0.completion_us"
    # Each rank sends 96 kB.
    assert slow["jobs.0.completion_us"] > 76.8
    assert slow["jobs.0.completion_us"] > fast["jobs.0.completion_us"] > 7.68


def test_results_do_not_depend_on_the_executor(incast: Path) -> None:
    expected = apus.sweep(incast, VARY, seeds=range(3))
    with ThreadPoolExecutor(3) as threads, processes(2) as pool:
        for executor in (threads, pool):
            assert list(apus.sweep(incast, VARY, seeds=range(3), executor=executor)) == list(
                expected
            )


def test_a_pickled_point_is_the_same_run_and_its_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "sizes.txt").write_text("1000 50\n64000 100\n")
    file = tmp_path / "load.toml"
    file.write_text("""\
duration = "1ms"
topology = { kind = "star", hosts = 4, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "poisson"
load = 0.3
sizes = { file = "sizes.txt" }
""")
    options: Any = {"set": [], "seed": None, "variant": None, "quick": False, "max_memory": None}
    (point,) = _native.Point.of(_native.Scenario.open(str(file), options), str(tmp_path))
    copy = pickle.loads(pickle.dumps(point))
    assert copy.restore().effective() == point.effective()
    how: Any = {"threads": None, "watchdog": "1s", "max_memory": None}
    assert run_point(copy, how) == run_point(point, how)


def test_a_point_of_another_build_is_refused() -> None:
    with pytest.raises(apus.ScenarioError, match=r"is of apus 0\.0\.0, but this process has apus"):
        _native.Point.restore("0.0.0", "", None, "")


def test_a_store_repeats_no_finished_point(incast: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = apus.sweep(incast, VARY, seeds=2, out=out)
    assert first.reused == 0
    again = apus.sweep(incast, VARY, seeds=2, out=out, executor=Refusal())
    assert list(again) == list(first)
    assert again.reused == 8
    # Of eight stored runs, one is deleted and one is replaced by a run with another configuration.
    kept = sorted(path for path in (out / "runs").glob("*.json") if path.name != "plan.json")
    assert len(kept) == 8
    kept[0].unlink()
    kept[1].write_text(kept[1].read_text().replace("Gbps", "Mbps"))
    with Counting(2) as pool:
        repaired = apus.sweep(incast, VARY, seeds=2, out=out, executor=pool)
        assert pool.tasks == 2
    assert list(repaired) == list(first)
    # Another sweep that shares points executes only its additional ones.
    with Counting(2) as pool:
        apus.sweep(
            incast,
            {"topology.hosts": [3, 5]},
            set={"topology.rate": "25Gbps"},
            out=out,
            executor=pool,
        )
        assert pool.tasks == 1


def test_a_store_has_the_files_of_the_command(incast: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep = apus.sweep(incast, VARY, out=out)
    header, *lines = (out / "sweep.csv").read_text().splitlines()
    assert header.startswith("topology.rate,topology.hosts,variant,seed,")
    assert len(lines) == 4
    plan = json.loads((out / "runs" / "plan.json").read_text())
    assert plan["vary"][1] == {"key": "topology.hosts", "values": ["3", "4"]}
    runs = json.loads((out / "sweep.json").read_text())["runs"]
    expected = [point.summary.to_dict() for point in sweep if point.summary is not None]
    assert [run["summary"] for run in runs] == expected
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").touch()
    with pytest.raises(OSError, match="other"):
        apus.sweep(incast, VARY, out=other)


def test_a_failed_point_is_kept_with_its_settings(incast: Path, tmp_path: Path) -> None:
    fault = '[[fault]]\nlink = "* <-> *"\nkind = "down"\nat = "1ms"\n'
    incast.write_text(incast.read_text() + fault)
    vary = {"duration": ["1500us", "9ms"]}
    with pytest.raises(
        apus.SweepError, match=r"duration=9ms, seed 1: .*no packet was deliv"
    ) as error:
        apus.sweep(incast, vary, out=tmp_path / "out", watchdog="2ms")
    sweep = error.value.sweep
    assert [not point.done for point in sweep] == [False, True]
    assert sweep.failures == [sweep[1]]
    (failed,) = (tmp_path / "out" / "runs").glob("*.failed.json")
    assert json.loads(failed.read_text())["settings"] == "duration=9ms, seed 1"
    assert "1 of 2 points complete, 1 failed" in repr(sweep)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_keeps_what_has_ended(incast: Path, tmp_path: Path) -> None:
    vary = {"duration": ["1ms", "1000s"]}

    def interrupt(share: float, _text: str) -> None:
        if share == 0.5:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(apus.SweepInterrupted, match="1 of 2 points complete and kept") as error:
        apus.sweep(incast, vary, out=tmp_path / "out", progress=interrupt)
    assert [not point.done for point in error.value.sweep] == [False, True]
    assert len((tmp_path / "out" / "sweep.csv").read_text().splitlines()) == 2


def test_results_are_readable_while_the_sweep_runs(incast: Path) -> None:
    sweep = apus.sweep(incast, {"duration": ["1ms", "1000s"]}, wait=False)
    while not sweep.done:
        threading.Event().wait(0.01)
    assert sweep.running
    assert sweep.rows("goodput_gbps")[0]["goodput_gbps"] > 50
    sweep.cancel()
    assert not sweep.running
    assert sweep.done == 1


def test_the_loss_of_a_process_of_a_pool_is_an_error_that_names_the_remedy(
    incast: Path, tmp_path: Path
) -> None:
    vary = {"duration": ["1ms", "1000s"]}
    with processes(1) as pool:
        sweep = apus.sweep(incast, vary, executor=pool, out=tmp_path / "out", wait=False)
        while not sweep.done:
            threading.Event().wait(0.01)
        (worker,) = pool._processes  # noqa: SLF001 - there is no public way to a worker
        os.kill(worker, signal.SIGKILL)
        with pytest.raises(apus.SweepError, match=r"the executor ended early.*the same call"):
            sweep.wait()
    assert [not point.done for point in sweep] == [False, True]


class Ended(Executor):
    """An executor that was shut down: it gives up its tasks."""

    def submit(self, fn: Callable[..., Any], /, *_: object, **__: object) -> Future[Any]:
        """Return a task that was cancelled."""
        future: Future[Any] = Future()
        assert fn
        assert future.cancel()
        return future


def test_points_that_the_executor_cancels_are_an_error(incast: Path) -> None:
    with pytest.raises(
        apus.SweepError, match=r"ended early \(CancelledError\).*0 of 4 po"
    ) as error:
        apus.sweep(incast, VARY, executor=Ended())
    assert error.value.sweep.done == 0


def test_progress_is_reported(incast: Path) -> None:
    heard = []
    apus.sweep(
        incast,
        {"duration": ["1ms", "50ms"]},
        progress=lambda share, text: heard.append((share, text)),
    )
    assert all(0 <= share <= 1 for share, _ in heard)
    assert all("of 2 points complete" in text for _, text in heard)


def test_rows_have_settings_and_metrics(incast: Path) -> None:
    sweep = apus.sweep(incast, VARY)
    row = sweep.rows("op_latency_us.p99")[0]
    assert list(row) == ["topology.rate", "topology.hosts", "seed", "op_latency_us.p99"]
    assert row["op_latency_us.p99"] == sweep[0].metric("op_latency_us.p99") > 5
    with pytest.raises(apus.ScenarioError, match="did you mean `goodput_gbps`"):
        sweep.rows("goodput_gpbs")


@pytest.mark.parametrize(
    ("vary", "arguments", "message"),
    [
        ({"duration": "1ms"}, {}, r"vary\['duration'\]: '1ms' is one value"),
        ({"duration": []}, {}, "has no value"),
        ({"seed": [1, 2]}, {}, r"vary\['seed'\]: write the seeds .* as the argument `seeds`"),
        ({"duration": ["1ms", "1ms"]}, {}, "is there twice"),
        ({"duration": ["1ms"]}, {"set": {"duration": "2ms"}}, "has no effect"),
        ({"topology.rat": ["1Gbps"]}, {}, "did you mean `rate`"),
        ({"duration": ["1ms"]}, {"seeds": 0}, "seeds=0: must be from 1 to 10000"),
        ({"duration": ["1ms"]}, {"seeds": 10_001}, "seeds=10001: must be from 1 to 10000"),
        ({"duration": ["1ms"]}, {"seeds": 1.5}, r"seeds=1\.5: must be from 1 to 10000"),
        ({"duration": ["1ms"]}, {"seeds": itertools.count()}, "has more than 10000 seeds"),
        ({"duration": ["1ms"]}, {"seeds": [2**53 + 1]}, "must be a whole number from 0 to 2.53"),
        ({"duration": ["1ms"]}, {"seeds": ["1"]}, "'1' must be a whole number from 0"),
        ({"duration": ["1ms"]}, {"seeds": []}, "has no seed"),
        ({"duration": ["1ms"]}, {"seeds": [1, 1]}, "is there twice"),
        ({"duration": ["1ms"]}, {"seeds": [-1]}, "-1 must be a whole number from 0"),
    ],
)
def test_wrong_arguments_are_errors_before_anything_runs(
    incast: Path, vary: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(apus.ScenarioError, match=message):
        apus.sweep(incast, vary, executor=Refusal(), **arguments)
