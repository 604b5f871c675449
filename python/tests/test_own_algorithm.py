"""Algorithms in Python: parameters, runs beside built-in algorithms, and errors."""

import copy
import os
import pickle
import re
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import apus
from apus import parameters


class Constant(apus.OwnAlgorithm):
    """A constant window, to compare with the built-in algorithm of this name."""

    window = parameters.number(4, "window in packets", must="at least 1")

    def on_ack(self, event: apus.AckEvent) -> None:
        pass

    def on_loss(self, event: apus.LossEvent) -> None:
        pass

    def on_timeout(self, event: apus.TimeoutEvent) -> None:
        pass

    def allowance(self) -> float | apus.Allowance:
        return self.window


class Delay(Constant):
    """Additive increase below a target of the RTT, multiplicative decrease above it."""

    target = parameters.time("30us", "RTT to aim at", must="above 0")
    beta = parameters.number(0.5, "share by which the window falls", must="above 0 and below 1")
    ends: ClassVar[list[float]] = []

    def start(self, flow: apus.FlowInfo) -> None:
        self.cwnd = flow.line_rate * self.target / (8 * flow.packet)
        self.decreased = 0.0

    def on_ack(self, event: apus.AckEvent) -> None:
        if event.rtt < self.target:
            self.cwnd += event.acked_packets / self.cwnd
        elif event.now - self.decreased > event.rtt:
            self.decreased = event.now
            self.cwnd = max(0.1, self.cwnd * (1 - self.beta))
        self.ends.append(self.cwnd)

    def allowance(self) -> float | apus.Allowance:
        if self.cwnd < 1:
            return apus.Allowance(self.cwnd, delay=self.target / self.cwnd)
        return self.cwnd


def test_a_constant_window_gives_the_results_of_the_built_in_one(incast: Path) -> None:
    apus.algorithm("constant-in-python", Constant)
    both: list[Any] = [
        apus.run(incast, set={"algorithm": f'{{ name = "{name}", window = 4 }}'}).summary.to_dict()
        for name in ("constant", "constant-in-python")
    ]
    assert both[0]["goodput_gbps"] > 50
    assert [one["groups"][0].pop("algorithm") for one in both] == ["constant", "constant-in-python"]
    assert both[0] == both[1]


def test_a_run_that_calls_python_has_one_thread(incast: Path) -> None:
    """Its threads would wait for each other."""
    apus.algorithm("constant-in-python", Constant)
    cores = min(2, len(os.sched_getaffinity(0)))
    for name, threads in (("constant", cores), ("constant-in-python", 1)):
        (run,) = apus.run(incast, set={"algorithm": f'{{ name = "{name}" }}'}, threads=2)
        assert run.cost["threads"] == threads


def test_parameters_come_from_the_scenario_and_change_the_run(incast: Path) -> None:
    apus.algorithm("constant-in-python", Constant)
    goodput = [
        apus.run(
            incast, set={"algorithm": f'{{ name = "constant-in-python", window = {window} }}'}
        ).summary["goodput_gbps"]
        for window in (1, 16)
    ]
    # Three packets of 4160 bytes per RTT of 5 us are 20 Gb/s; 48 packets fill the link.
    assert goodput[0] < 30
    assert goodput[1] > 60


def test_an_object_is_the_algorithm_of_a_scenario() -> None:
    def goodput(own: apus.Algorithm) -> float:
        scenario = apus.Scenario(
            duration="1ms",
            topology=apus.star(hosts=4, rate="100Gbps", delay="1us", buffer="4MB"),
            algorithm=own,
            workloads=[apus.incast(size="64kB")],
        )
        return float(apus.run(scenario).summary["goodput_gbps"])

    few, many = goodput(Constant(window=1)), goodput(Constant(window=1).replace(window=16))
    assert few < 30
    assert many > 60


def test_it_runs_beside_a_built_in_algorithm_in_traffic_classes(incast: Path) -> None:
    apus.algorithm("delay", Delay)
    incast.write_text("""\
duration = "2ms"
[topology]
kind = "star"
hosts = 4
rate = "100Gbps"
delay = "1us"
buffer = "4MB"
[[topology.class]]
name = "first"
[[topology.class]]
name = "second"
[algorithm]
swift = {}
delay = { target = "20us" }
[[workload]]
kind = "incast"
size = "64kB"
algorithm = "swift"
class = "first"
[[workload]]
kind = "incast"
size = "64kB"
algorithm = "delay"
class = "second"
""")
    shares = [one["goodput_gbps"] for one in apus.run(incast).summary["groups"]]
    assert len(shares) == 2
    assert min(shares) > 10


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ('targe = "5us"', "did you mean `target`"),
        ("target = 5", "`target` cannot be `5`"),
        ('target = "0s"', "`target` must be above 0"),
        ("beta = 1", "`beta` must be above 0 and below 1"),
    ],
)
def test_wrong_parameters_are_errors_of_the_scenario(
    incast: Path, setting: str, message: str
) -> None:
    apus.algorithm("delay", Delay)
    with pytest.raises(apus.ScenarioError, match=message):
        apus.run(incast, set={"algorithm": f'{{ name = "delay", {setting} }}'})


def test_an_object_has_its_parameters_in_seconds_bytes_and_bits_per_second() -> None:
    class Every(Constant):
        """A parameter of each kind."""

        number = parameters.number(1.5, "a number")
        count = parameters.count(3, "a count")
        time = parameters.time("20us", "a time")
        size = parameters.size("64KiB", "a size")
        rate = parameters.rate("10Gbps", "a rate")
        flag = parameters.flag(default=True, doc="a flag")
        choice = parameters.choice("up", ["up", "down"], "a choice")

    every = Every(size="1kB", flag=False, choice="down")
    assert (every.number, every.count, every.time, every.rate) == (1.5, 3, 20e-6, 10e9)
    assert (every.size, every.flag, every.choice) == (1000, False, "down")
    assert repr(every) == "Every(size='1kB', flag=False, choice='down')"
    assert every.settings == {"name": "every", "size": "1kB", "flag": False, "choice": "down"}
    with pytest.raises(apus.ScenarioError, match="no parameter `siz`; did you mean `size`"):
        Every(siz="1kB")


def test_an_object_can_be_driven_by_hand() -> None:
    own = Delay(target="10us")
    own.start(apus.FlowInfo(line_rate=100e9, packet=5000))
    # 100 Gb/s times 10 us are 125 kB: 25 packets.
    assert own.allowance() == pytest.approx(25)
    own.on_ack(apus.AckEvent(now=1.0, rtt=5e-6, acked_packets=5))
    assert own.allowance() == pytest.approx(25.2)
    own.on_ack(apus.AckEvent(now=1.0, rtt=20e-6))
    assert own.allowance() == pytest.approx(12.6)
    text = "TimeoutEvent(now=0.5, next_seq=0, is_same_flight=False)"
    assert repr(apus.TimeoutEvent(now=0.5)) == text


def test_an_object_is_pickled_by_the_path_of_its_class() -> None:
    apus.algorithm("delay", Delay)
    copy = pickle.loads(pickle.dumps(Delay(target="7us")))
    assert isinstance(copy, Delay)
    assert copy.target == 7e-6
    assert copy.settings == {"name": "delay", "target": "7us"}


def test_a_name_is_free_for_another_class_but_not_that_of_a_built_in() -> None:
    apus.algorithm("again", Constant)
    apus.algorithm("again", Delay)
    apus.algorithm("again", Delay)
    with pytest.raises(apus.ScenarioError, match="two algorithms are named `swift`"):
        apus.algorithm("swift", Constant)
    with pytest.raises(apus.ScenarioError, match="has letters, digits"):
        apus.algorithm("my own", Constant)
    with pytest.raises(apus.ScenarioError, match="OwnAlgorithm lacks `allowance`, `on_ack`"):
        apus.algorithm("own", apus.OwnAlgorithm)


class Failing(Constant):
    """Fails at the tenth acknowledgement."""

    def start(self, flow: apus.FlowInfo) -> None:
        self.left = 10

    def on_ack(self, event: apus.AckEvent) -> None:
        self.left -= 1
        _ = 1 / self.left


def test_an_exception_ends_the_run_with_its_traceback(incast: Path) -> None:
    apus.algorithm("failing", Failing)
    for threads in (None, 2):
        with pytest.raises(apus.RunError, match=r"Failing: ZeroDivisionError: .*on_ack\)") as error:
            apus.run(incast, set={"algorithm.name": "failing"}, seeds=2, threads=threads)
        cause = error.value.__cause__
        assert isinstance(cause, ZeroDivisionError)
        assert "_ = 1 / self.left" in "".join(traceback.format_exception(cause))


class FailingOnce(Constant):
    """Fails in the first run."""

    failed: ClassVar[list[float]] = []

    def on_ack(self, event: apus.AckEvent) -> None:
        if not self.failed:
            self.failed.append(event.now)
            raise ZeroDivisionError


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_after_a_failure_names_the_failure(endless: Path) -> None:
    apus.algorithm("failing-once", FailingOnce)

    def interrupt(_share: float, _text: str) -> None:
        if FailingOnce.failed:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(apus.Interrupted, match=r"0 runs complete.*, 1 failed") as error:
        apus.run(
            endless,
            set={"algorithm.name": "failing-once"},
            seeds=3,
            threads=1,
            progress=interrupt,
        )
    # The second run may have begun; the third one has not.
    assert re.search("[12] not started\n.*ZeroDivisionError", str(error.value))
    FailingOnce.failed.clear()
    with pytest.raises(apus.Interrupted, match=r"partial\n.*ZeroDivisionError") as error:
        apus.compare(endless, ["failing-once", "swift"], seeds=2, threads=1, progress=interrupt)
    # Runs that have not begun or have ended are not listed as failures.
    assert str(error.value).count("\n") == 1


@pytest.mark.parametrize(
    ("allowance", "message"),
    [
        (-1.0, "the window of an allowance must be above 0 packets, not -1"),
        (float("nan"), "must be above 0 packets, not NaN"),
        ("much", "TypeError"),
    ],
)
def test_an_impossible_allowance_ends_the_run(incast: Path, allowance: float, message: str) -> None:
    class Impossible(Constant):
        """Returns what is no window."""

        def allowance(self) -> float | apus.Allowance:
            return allowance

    apus.algorithm("impossible", Impossible)
    with pytest.raises(apus.ApusError, match=message):
        apus.run(incast, set={"algorithm.name": "impossible"})
    with pytest.raises(apus.ApusError, match=message):
        apus.compare(incast, ["impossible"])


def test_pace_timer_timeout_and_marks_reach_the_class(incast: Path) -> None:  # noqa: C901 - a class
    seen: set[str] = set()

    class Paced(Constant):
        """Paced at a rate, with everything that a class may have."""

        ecn = True

        def start(self, flow: apus.FlowInfo) -> None:
            self.tick = 10e-6

        def on_ack(self, event: apus.AckEvent) -> None:
            if event.marked_packets:
                seen.add("mark")

        def on_transmit(self, info: apus.SendInfo) -> None:
            seen.add("transmit")

        def on_idle(self, now: float) -> None:
            seen.add("idle")

        def next_timer(self) -> float | None:
            return self.tick

        def on_timer(self, now: float) -> None:
            assert now >= self.tick
            self.tick += 10e-6
            seen.add("timer")

        def rto(self) -> float:
            seen.add("rto")
            return 1e-3

        def path_label(self) -> int:
            return 1

        def allowance(self) -> float | apus.Allowance:
            return apus.Allowance(float("inf"), rate=40e9)

    apus.algorithm("paced", Paced)
    summary = apus.run(
        incast, set={"algorithm.name": "paced", "topology.ecn": '{ threshold = "20kB" }'}
    ).summary
    assert seen == {"mark", "transmit", "idle", "timer", "rto"}
    # Three senders of 40 Gb/s each exceed the link rate.
    assert summary["goodput_gbps"] > 60


@pytest.mark.parametrize("late", [0.0, 1e-6])
def test_a_timer_that_does_not_advance_ends_the_run(incast: Path, late: float) -> None:
    class OneShot(Constant):
        """Sets a timer once, and forgets to clear it."""

        def start(self, flow: apus.FlowInfo) -> None:
            self.at = 10e-6

        def next_timer(self) -> float | None:
            return self.at

        def on_timer(self, now: float) -> None:
            self.at -= late

    apus.algorithm("one-shot", OneShot)
    message = r"next_timer\(\) returned .* s, which is not after on_timer's now = .* or None"
    with pytest.raises(apus.RunError, match=message) as error:
        apus.run(incast, set={"algorithm.name": "one-shot"})
    assert isinstance(error.value.__cause__, ValueError)


def with_timer(at: float) -> type[Constant]:
    """Return a class with a timer that does not expire."""

    class WithTimer(Constant):
        """A constant window, and a timer."""

        def next_timer(self) -> float | None:
            return at

        def on_timer(self, now: float) -> None:
            raise AssertionError(now)

    return WithTimer


# `now` of an engine over UDP counts from its start and may exceed a day.
@pytest.mark.parametrize("at", [86_401.0, 18_446_744.0])
def test_a_timer_may_be_days_after_the_start(incast: Path, at: float) -> None:
    apus.algorithm("with-timer", with_timer(at))
    apus.run(incast, set={"algorithm.name": "with-timer"})


@pytest.mark.parametrize("at", [-1.0, float("nan"), float("inf"), 18_446_745.0])
def test_a_timer_at_a_time_that_does_not_exist_is_an_error(incast: Path, at: float) -> None:
    apus.algorithm("with-timer", with_timer(at))
    with pytest.raises(apus.ScenarioError, match="timer must be from 0 to 18446744 seconds"):
        apus.run(incast, set={"algorithm.name": "with-timer"})


def test_a_timer_of_the_past_expires_at_once_and_may_catch_up_in_steps(incast: Path) -> None:
    ticks: list[float] = []

    class Late(Constant):
        """Its first acknowledgement sets a timer that has expired, five periods ago."""

        at: float | None = None

        def on_ack(self, event: apus.AckEvent) -> None:
            if self.at is None:
                self.at = event.now - 2.5e-6

        def next_timer(self) -> float | None:
            return self.at

        def on_timer(self, now: float) -> None:
            assert self.at is not None
            ticks.append(now)
            self.at += 0.5e-6

    apus.algorithm("late", Late)
    apus.run(incast, set={"algorithm.name": "late"})
    # The first flow catches up within a single time.
    assert len(ticks) >= 5
    assert ticks[0] == ticks[4]


def variant(name: str, window: float, module: str) -> type[Constant]:
    """Return a class as if it were of this module."""

    class Variant(Constant):
        """A constant window."""

        def allowance(self) -> float | apus.Allowance:
            return window

    Variant.__name__ = Variant.__qualname__ = name
    Variant.__module__ = module
    return Variant


def scenario_of(own: apus.Algorithm) -> apus.Scenario:
    return apus.Scenario(
        duration="1ms",
        topology=apus.star(hosts=4, rate="100Gbps", delay="1us", buffer="4MB"),
        algorithm=own,
        workloads=[apus.incast(size="64kB")],
    )


def test_two_classes_of_one_name_are_not_taken_for_each_other() -> None:
    first, second = variant("Twin", 1, "variant_a"), variant("Twin", 16, "variant_b")
    small = scenario_of(first())
    with pytest.raises(apus.ScenarioError, match=r"variant_b.*is that of variant_a.*apus\.algo"):
        second()
    apus.algorithm("twin-b", second)
    large = scenario_of(second())
    assert first() != second()
    goodput = [float(apus.run(one).summary["goodput_gbps"]) for one in (small, large)]
    assert goodput[0] < 30
    assert goodput[1] > 60
    # If a name is explicitly given to another class, objects of the earlier class have no
    # algorithm.
    apus.algorithm("twin", second)
    with pytest.raises(apus.ScenarioError, match=r"variant_a.*is now that of variant_b"):
        apus.run(small)
    apus.algorithm("twin-a", first)
    assert apus.run(scenario_of(first())).summary["goodput_gbps"] == goodput[0]


@pytest.mark.parametrize(
    "read",
    [
        apus.run,
        lambda one: apus.compare(one, ["swift"]),
        lambda one: apus.compare("swift/table4", [one.part("algorithm")]),
        lambda one: apus.replay(one.part("algorithm"), "none.csv"),
        lambda one: apus.Host("127.0.0.1:0", insecure=True, algorithm=one.part("algorithm")),
    ],
)
def test_an_object_of_a_class_that_was_defined_again_is_an_error(
    read: Callable[[apus.Scenario], object],
) -> None:
    old = scenario_of(variant("Cell", 1, "notebook")())
    new = scenario_of(variant("Cell", 16, "notebook")())
    assert float(apus.run(new).summary["goodput_gbps"]) > 60
    with pytest.raises(apus.ScenarioError, match=r"defined again since.*make the object again"):
        read(old)


def test_a_copy_of_an_object_is_complete_even_if_its_state_refers_to_it() -> None:
    own = Delay(target="7us")
    own.itself = [own]  # type: ignore[attr-defined]
    copied = copy.deepcopy(own)
    assert copied.itself[0] is copied  # type: ignore[attr-defined]
    assert copied.settings == own.settings
    assert copied == own
    assert repr(copied.replace(beta=0.5)) == "Delay(target='7us', beta=0.5)"
    assert apus.run(scenario_of(copied)).summary == apus.run(scenario_of(own)).summary
