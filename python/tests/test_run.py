"""Runs of scenario files, their errors, and their early ends."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import apus
from apus.summary import Summary


def test_a_file_runs_and_its_goodput_is_that_of_the_bottleneck(incast: Path) -> None:
    result = apus.run(incast)
    assert len(result) == 1
    # Of 4160 bytes of a packet, 4096 are payload, and preambles also count: the link limits the
    # goodput.
    assert 50 < result.summary.goodput_gbps < 100 * 4096 / 4160
    assert "goodput" in repr(result)


def test_the_build_is_the_version_and_a_hash_of_the_sources() -> None:
    version, hash_of_sources = apus.__build__.split("+")
    assert version == apus.__version__
    assert len(int(hash_of_sources, 16).to_bytes(8, "big")) == 8


def test_a_setting_replaces_that_of_the_scenario(incast: Path) -> None:
    result = apus.run(incast, set={"topology.rate": "10Gbps", "topology.hosts": 3})
    assert result.summary.goodput_gbps < 10
    assert result.summary.busiest_port.name == "switch 0 -> host 2"


def test_seeds_are_counted_from_the_first(incast: Path) -> None:
    result = apus.run(incast, seeds=3, seed=7)
    assert [run.seed for run in result] == [7, 8, 9]
    with pytest.raises(ValueError, match="there are 3 runs"):
        _ = result.summary


def test_equal_seeds_give_equal_summaries_in_threads(incast: Path) -> None:
    def one(seed: int) -> Summary:
        return apus.run(incast, seed=seed, progress=False).summary

    with ThreadPoolExecutor(8) as pool:
        first, second = list(pool.map(one, range(20))), list(pool.map(one, range(20)))
    assert first == second
    assert first[0] != first[1]


def test_an_error_in_a_file_names_line_and_remedy(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('duration = "2ms"\nfoo = 1\n')
    with pytest.raises(apus.ScenarioError, match="unknown key `foo`") as error:
        apus.run(file)
    problem = next(p for p in error.value.problems if "foo" in p.message)
    assert (problem.source, problem.line, problem.column) == (str(file), 2, 1)
    assert f"{file}:2:1: unknown key `foo`" in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"set": {"topology.rat": "10Gbps"}}, "did you mean `rate`"),
        ({"set": {"topology": object()}}, "is no value of a setting"),
        ({"watchdog": "1"}, 'watchdog="1": '),
        ({"max_memory": "1B"}, "max_memory is 1B"),
        ({"variant": "a"}, "unknown variant `a`"),
    ],
)
def test_wrong_arguments_are_errors(
    incast: Path, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(apus.ScenarioError, match=message):
        apus.run(incast, **arguments)  # type: ignore[arg-type]


def test_an_unknown_scenario_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(apus.ScenarioError, match="did you mean `swift/table3`"):
        apus.run("swift/table33")


def test_a_run_without_progress_is_an_error_with_its_results(incast: Path) -> None:
    fault = '[[fault]]\nlink = "* <-> *"\nkind = "down"\n'
    incast.write_text(incast.read_text() + fault)
    with pytest.raises(apus.RunError, match="no packet was delivered") as error:
        apus.run(incast, watchdog="1ms")
    result = error.value.result
    assert result is not None
    assert result[0].interrupted


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_keeps_partial_results(endless: Path) -> None:
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(apus.Interrupted, match="0 runs complete, ended early: endless") as error:
        apus.run(endless)
    (run,) = error.value.result
    assert run.interrupted
    assert 0 < run.summary.simulated_s < 1000


def test_progress_is_reported_and_may_end_the_run(endless: Path) -> None:
    heard = []

    def hear(share: float, text: str) -> None:
        heard.append((share, text))
        if len(heard) == 3:
            raise StopIteration

    with pytest.raises(StopIteration):
        apus.run(endless, progress=hear)
    shares = [share for share, _ in heard]
    assert shares == sorted(shares)
    assert "of 1000000.0 ms simulated" in heard[-1][1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": 0}, "seeds=0: must be from 1 to 10000"),
        ({"seeds": 42_000_000}, "seeds=42000000: must be from 1 to 10000"),
        ({"seeds": -1}, "seeds=-1: must be from 1 to 10000"),
        ({"seeds": 2**70}, f"seeds={2**70}: must be from 1 to 10000"),
        ({"seed": -1}, "seed=-1: must be from 0 to 9007199254740992"),
        ({"seed": 2**53 + 1}, "seed=9007199254740993: must be from 0 to 9007199254740992"),
        ({"threads": 0}, "threads=0: must be from 1 to 4294967295"),
        ({"threads": -1}, "threads=-1: must be from 1 to 4294967295"),
    ],
)
def test_a_number_out_of_its_range_is_an_error(
    incast: Path, arguments: dict[str, int], message: str
) -> None:
    calls: list[Any] = [lambda **given: apus.run(incast, **given)]
    if "seed" not in arguments:
        calls.append(lambda **given: apus.reproduce("swift/table4", quick=True, **given))
        calls.append(lambda **given: apus.compare(incast, ["swift"], **given))
    else:
        calls.append(lambda **given: apus.validate(incast, **given))
    for call in calls:
        # A comparison has its own limit.
        with pytest.raises(apus.ScenarioError, match=message.replace("10000", "100?0?0")):
            call(**arguments)
