"""Tuning by Optuna: its front, its repeatability and its errors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import apus

SEARCH: dict[str, Any] = {
    "algorithm.base_target": apus.Range("5us", "60us", log=True),
    "algorithm.beta": apus.Range(0.2, 0.9),
    "algorithm.decompose": [True, False],
}


def tuned(file: Path, **arguments: Any) -> apus.Tuning:
    return apus.tune(file, SEARCH, trials=12, batch=6, set={"duration": "1ms"}, **arguments)


def test_equal_arguments_give_equal_trials(incast: Path) -> None:
    first = tuned(incast)
    assert list(first) == list(tuned(incast))
    assert list(first) != list(tuned(incast, sampler_seed=1))


def test_no_trial_surpasses_the_front(incast: Path) -> None:
    tuning = tuned(incast, seeds=2)
    assert len(tuning) == 12

    def surpasses(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
        better = a["op_latency_us.p99"] <= b["op_latency_us.p99"]
        return better and a["goodput_gbps"] >= b["goodput_gbps"] and a != b

    front = [trial.metrics for trial in tuning.front]
    assert front
    for trial in tuning:
        assert trial.metrics in front or any(surpasses(one, trial.metrics) for one in front)
        assert not any(surpasses(trial.metrics, one) for one in front)
        assert 0.2 <= trial.settings["algorithm.beta"] <= 0.9  # type: ignore[operator]
        assert str(trial.settings["algorithm.base_target"]).endswith("us")


def test_the_metrics_of_a_trial_are_the_medians_of_its_runs(incast: Path) -> None:
    trial = tuned(incast, seeds=3)[0]
    settings = {**trial.settings, "duration": "1ms"}
    found = sorted(run.summary["goodput_gbps"] for run in apus.run(incast, set=settings, seeds=3))
    assert trial.metrics["goodput_gbps"] == found[1]


def test_a_directory_has_all_trials_and_repeats_none(incast: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = tuned(incast, out=out)
    assert len((out / "sweep.csv").read_text().splitlines()) == 1 + len(first)
    kept = {path: path.stat().st_mtime_ns for path in (out / "runs").glob("????????????????.json")}
    assert list(tuned(incast, out=out)) == list(first)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


def test_the_front_is_drawn(incast: Path) -> None:
    tuning = tuned(incast)
    spec = tuning.plot().to_dict()
    assert spec["encoding"]["x"]["title"] == "op_latency_us.p99 [us]"
    figure = tuning.plot(backend="matplotlib")
    assert figure.axes[0].get_ylabel() == "goodput_gbps [Gb/s]"


def test_values_that_contradict_each_other_are_a_failed_trial(incast: Path) -> None:
    search = {
        "algorithm.min_cwnd": [0.001, 100.0],
        "algorithm.max_cwnd": [50.0, 200.0],
    }
    tuning = apus.tune(incast, search, trials=12, set={"duration": "200us"})
    wrong = [trial for trial in tuning.failures if "min_cwnd" in str(trial.failure)]
    assert any(list(trial.settings.values()) == [100.0, 50.0] for trial in wrong)
    assert all(trial.settings["algorithm.min_cwnd"] == 100 for trial in wrong)
    assert any(trial.failure is None for trial in tuning)


def test_values_of_a_range_are_quantities_that_scenarios_read(incast: Path) -> None:
    search = {
        # Ranges with fractions of a byte at nearly all values, and with numbers that Python writes
        # with exponents.
        "topology.buffer": apus.Range("100.5KiB", "999.5KiB"),
        "algorithm.base_target": apus.Range("0.00001s", "0.0001s", log=True),
        "workload.size": apus.Range("1000B", "100000B", log=True),
    }
    tuning = apus.tune(incast, search, trials=12, set={"duration": "200us"})
    assert not tuning.failures
    for trial in tuning:
        size = str(trial.settings["workload.size"]).removesuffix("B")
        assert 1000 <= int(size) <= 100_000
        target = str(trial.settings["algorithm.base_target"]).removesuffix("s")
        assert "e" not in target
        assert 1e-5 <= float(target) <= 1e-4
        buffer = str(trial.settings["topology.buffer"]).removesuffix("B")
        assert 100.5 * 1024 <= int(buffer) <= 999.5 * 1024


@pytest.mark.parametrize(
    ("search", "arguments", "message"),
    [
        ({}, {}, "has no parameter"),
        ({"algorithm.beta": 0.3}, {}, "must be a Range or a list"),
        ({"algorithm.beta": apus.Range(0.9, 0.2)}, {}, "`low` must be below `high`"),
        ({"algorithm.beta": apus.Range(0.0, 0.2, log=True)}, {}, "must be above 0"),
        ({"algorithm.base_target": apus.Range("1us", "1ms")}, {}, "the units differ"),
        ({"algorithm.base_target": apus.Range("low", "high")}, {}, "must be numbers or quantities"),
        ({"algorithm.bta": apus.Range(0.1, 0.2)}, {}, "did you mean `beta`"),
        ({"algorithm.beta": [0.5]}, {"set": {"algorithm.beta": 0.4}}, "has no effect"),
        ({"algorithm.beta": [0.5]}, {"trials": 0}, "trials=0: must be at least 1"),
        ({"algorithm.beta": [0.5]}, {"minimize": ["jian"]}, "did you mean `jain`"),
        ({"algorithm.beta": [0.5]}, {"minimize": [], "maximize": []}, "name no metric"),
        ({"algorithm.beta": [0.5]}, {"maximize": ["jain", "jain"]}, "is there twice"),
    ],
)
def test_wrong_arguments_are_errors(
    incast: Path, search: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(apus.ScenarioError, match=message):
        apus.tune(incast, search, **arguments)


def test_a_search_without_metrics_is_an_error(incast: Path) -> None:
    with pytest.raises(apus.TuneError, match="makespan_us was not measured"):
        apus.tune(incast, {"algorithm.beta": [0.5]}, minimize=["makespan_us"], trials=1)
