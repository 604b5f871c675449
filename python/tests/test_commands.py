"""Comparisons, experiments, replays and explanations."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import apus
from apus import TargetTuning

CHECKED = """\
[[check]]
name = "goodput"
kind = "invariant"
metric = "goodput_gbps"
low = 50
high = 98.5
source = "the rate of the link"
[[check]]
name = "loss"
kind = "invariant"
metric = "loss_rate"
high = -1
source = "impossible"
"""


def test_algorithms_are_compared_on_a_scenario(incast: Path) -> None:
    algorithms = ["cubic", apus.Swift(base_target="40us")]
    comparison = apus.compare(incast, algorithms, seeds=2, metrics=["jain"])
    for algorithm in comparison.algorithms:
        with pytest.raises(KeyError, match="no_metric"):
            comparison.difference(algorithm, "no_metric")
    assert comparison.algorithms == ["cubic", "swift"]
    for algorithm in comparison.algorithms:
        # 4 us without a queue, and at most three ops of 64 kB in the queue: 15.7 us at 100 Gb/s.
        median = comparison.median(algorithm, "fabric_rtt_us.p50")
        assert median is not None
        assert 4 < median < 20
    assert {row["metric"] for row in comparison.rows()} >= {"goodput_gbps", "jain"}
    assert "swift" in repr(comparison)
    chart = comparison.plot("jain", "goodput_gbps").to_dict()
    (bars,) = chart["datasets"].values()
    assert [(row["metric"], row["name"], row["value"]) for row in bars] == [
        (title, name, comparison.median(name, metric))
        for metric, title in (("jain", "jain"), ("goodput_gbps", "goodput_gbps [Gb/s]"))
        for name in ("cubic", "swift")
    ]
    with pytest.raises(apus.plot.PlotError, match="no run has a value"):
        comparison.plot("stalled.noticed")
    with pytest.raises(KeyError):
        comparison.median("dctcp", "jain")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"algorithms": ["swif"]}, "did you mean"),
        ({"algorithms": []}, "at least one algorithm"),
        ({"algorithms": [apus.Swift]}, r"Swift is a class; write Swift\(\)"),
        ({"algorithms": ["swift"], "seeds": 0}, "seeds=0: must be from 1 to 1000"),
        ({"algorithms": ["swift"], "tune_each": True, "keep": 100.0}, "below 100 percent"),
        *(
            ({"algorithms": ["swift"], name: value}, f"^{name}={value!r}: has no effect without")
            for name, value in {
                "objective": "jain",
                "keep": 98.0,
                "tune_values": 8,
                "tune_seeds": 3,
            }.items()
        ),
        ({"algorithms": ["swift"], "metrics": ["jan"]}, "unknown metric"),
        ({"algorithms": ["swift"], "set": {"dctcp.g": "1"}}, "dctcp"),
    ],
)
def test_wrong_comparisons_are_errors(
    incast: Path, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(apus.ScenarioError, match=message):
        apus.compare(incast, **arguments)  # type: ignore[arg-type]


def test_an_experiment_is_held_against_its_checks(incast: Path) -> None:
    incast.write_text(incast.read_text() + CHECKED)
    result = apus.reproduce(incast, seeds=2)
    goodput, loss = result.checks
    assert (goodput.name, goodput.verdict, goodput.passes) == ("goodput", "pass", True)
    assert goodput.measured == result[0].summary.goodput_gbps
    assert len(goodput.seeds) == 2
    assert (loss.verdict, loss.passes) == ("fail", False)
    assert not result.passes
    assert "the rate of the link" in repr(result)


def test_unknown_experiments_are_errors(incast: Path) -> None:
    with pytest.raises(apus.ScenarioError, match="did you mean"):
        apus.reproduce("swift/table33")
    with pytest.raises(apus.ScenarioError, match=r"has no `\[\[check\]\]`"):
        apus.reproduce(incast)


def test_a_valid_scenario_is_planned_with_its_memory(incast: Path) -> None:
    (run,) = apus.validate(incast, seed=3)
    assert (run.seed, run.duration_s) == (3, 0.002)
    assert run.memory_bytes > 0
    assert "base_target" in run.effective
    # The run ends within its executed start.
    assert run.estimate is not None
    assert run.estimate.measured
    assert run.estimate.events == apus.run(incast, seed=3).summary["work"]["events"]
    with pytest.raises(apus.ScenarioError, match="unknown variant"):
        apus.validate(incast, variant="a")


def test_the_time_of_a_long_run_is_estimated_with_its_drain(incast: Path) -> None:
    (run,) = apus.validate(incast, set={"duration": "1s", "drain": "500ms"})
    assert run.estimate is not None
    assert not run.estimate.measured
    assert run.estimate.seconds > 0
    # The load is the same, and the drain is half as long.
    assert run.estimate.drain_events == pytest.approx(run.estimate.events / 2, rel=0.1)
    (unknown,) = apus.validate(incast, estimate=False)
    assert unknown.estimate is None


def test_the_target_lies_at_the_unloaded_rtt(incast: Path) -> None:
    loaded = {"workload.size": "1MB", "duration": "4ms", "warmup": "1ms"}
    tuned = apus.tune_target(incast, set=loaded, seeds=1)
    assert tuned.base_target is not None
    # Four links of 1 us, and packets of 4160 and 84 bytes on two links each: 4.7 us. The target is
    # within a factor of two of it.
    assert 2.3 < float(tuned.base_target.removesuffix("us")) < 9.4
    assert tuned.base_target in repr(tuned)
    best = max(row["goodput_gbps"] for row in tuned.rows())
    kept = [row for row in tuned.rows() if row["keeps"] and row["parameter"] == "base_target"]
    assert all(row["goodput_gbps"] >= 0.98 * best for row in kept)
    with pytest.raises(apus.ScenarioError, match="the search varies `base_target`"):
        apus.tune_target(incast, set={"algorithm.base_target": "20us"})
    with pytest.raises(apus.ScenarioError, match="none of its algorithms has a base target"):
        apus.tune_target(incast, set={"algorithm.name": "cubic"})


def test_values_of_a_tuning_are_quantities_of_scenarios() -> None:
    def tuned(us: float) -> str | None:
        return TargetTuning(json.dumps({"base_target_us": us}), "").base_target

    assert tuned(4.7) == "4.7us"
    assert tuned(113322.6) == "113322.6us"
    assert tuned(1e6) == "1000000us"
    assert TargetTuning('{"base_target_us": null}', "").base_target is None


def test_rows_of_a_tuning_have_bounds_of_censored_medians_and_reasons() -> None:
    def sample(latency: object, fails: str | None) -> dict[str, object]:
        medians = {"goodput_gbps": 9.5, "op_latency_us.p99": latency}
        return {"value_us": 5.0, "keeps": fails is None, "fails": fails, "medians": medians}

    curve = [sample({"lower": 80.5, "upper": None}, "unfinished ops"), sample(90.25, None)]
    data = {"base_target_curve": curve, "fs_range_curve": None}
    open_, known = TargetTuning(json.dumps(data), "").rows()
    assert (open_["keeps"], open_["fails"]) == (False, "unfinished ops")
    assert (known["keeps"], known["fails"]) == (True, None)
    latencies = [
        [row[f"op_latency_us.p99{end}"] for end in ("", "_lower", "_upper")]
        for row in (open_, known)
    ]
    assert latencies == [[None, 80.5, None], [90.25, 90.25, 90.25]]
    assert (open_["goodput_gbps"], "goodput_gbps_lower" in open_) == (9.5, False)


def test_a_log_is_replayed(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    header = "time_ps,event,rtt_ps,fabric_delay_ps,endpoint_delay_ps,hops,acked\n"
    log.write_text(header + "30000000,ack,20000000,20000000,0,3,1\n60000000,timeout,,,,,\n")
    ack, timeout = apus.replay(apus.Swift(base_target="25us"), log)
    assert (ack.event, ack.time_ps) == ("ack", 30_000_000)
    assert ack.fabric_cwnd is not None
    assert timeout.event == "timeout"
    assert timeout.cwnd <= ack.cwnd
    assert apus.replay("swift", log, set={"base_target": "25us"}) == [ack, timeout]
    log.write_text(header + "x,ack,1,1,1,1,1\n")
    with pytest.raises(apus.ScenarioError, match=r"log.csv:2"):
        apus.replay("swift", log)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_a_replay(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    os.mkfifo(log)
    row = b"30000000,ack,20000000,20000000,0,3,1\n"

    def write() -> bool:
        """Write a log until nobody reads it; returns whether that came to pass."""
        with log.open("wb", buffering=0) as pipe:
            pipe.write(b"time_ps,event,rtt_ps,fabric_delay_ps,endpoint_delay_ps,hops,acked\n")
            os.kill(os.getpid(), signal.SIGINT)
            try:
                for _ in range(20_000):
                    pipe.write(row * 100)
            except BrokenPipeError:
                return True
        return False

    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(write)
        with pytest.raises(KeyboardInterrupt):
            apus.replay("swift", log)
        assert written.result(60)


def test_names_are_explained() -> None:
    assert "base_target" in apus.explain("swift")
    assert "unit: Gb/s" in apus.explain("goodput_gbps")
    with pytest.raises(apus.ScenarioError, match="did you mean `goodput_gbps`"):
        apus.explain("goodput_gbp")
