"""The numbers of runs as objects."""

import collections.abc
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import apus
from apus import summary
from apus._numbers import Numbers

CLASSES = [{"name": "high"}, {"name": "low", "weight": 4}]
MEASURED = apus.Scenario(
    duration="2ms",
    topology=apus.star(hosts=4, rate="100Gbps", delay="1us", buffer="4MB", classes=CLASSES),
    algorithm=apus.Swift(),
    workloads=[
        apus.incast(name="bulk", size="64kB", receiver=0, class_="low", deadline="1ms"),
        apus.poisson(name="small", load=0.2, size="1kB", class_="high"),
    ],
    measure={
        "sizes": ["0B..10kB", "10kB.."],
        "ports": {"edge": ["switch 0 -> host *"]},
        "settle": [
            {
                "name": "full",
                "of": {"ports": "edge"},
                "quantity": "throughput",
                "interval": "10us",
                "above": "50Gbps",
                "hold": "50us",
            }
        ],
        "span": [
            {
                "name": "queue",
                "of": {"ports": "edge"},
                "quantity": "queue",
                "interval": "10us",
                "to": "1ms",
            }
        ],
        "compare": [{"name": "loss", "ports": "edge", "class": "low", "with": "high"}],
    },
)


def fits(value: object, kind: object) -> bool:
    """Return whether a value has an annotated type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return any(fits(value, one) for one in arguments)
    if origin is collections.abc.Sequence:
        return isinstance(value, Sequence) and all(fits(one, arguments[0]) for one in value)
    if origin is collections.abc.Mapping:
        return isinstance(value, Mapping) and all(fits(v, arguments[1]) for v in value.values())
    if kind is typing.Any:
        return True
    if kind is float:
        return isinstance(value, int | float)
    return isinstance(value, typing.cast("type", kind))


def wrong(numbers: Numbers, path: str = "") -> list[str]:
    """Return the attributes of results that have another type, or none."""
    found = []
    names = {"Mapping": Mapping, "Sequence": Sequence}
    hints = typing.get_type_hints(type(numbers), localns=names)
    hints = {name: kind for name, kind in hints.items() if not name.startswith("_")}
    for name, kind in hints.items():
        value = getattr(numbers, name)
        if not fits(value, kind):
            found.append(f"{path}{name} is {value!r}, declared as {kind}")
        parts = value.values() if isinstance(value, Mapping) else [value]
        for one in value if isinstance(value, list) else parts:
            if isinstance(one, Numbers):
                found += wrong(one, f"{path}{name}.")
    undeclared = {name.rstrip("_") for name in hints} ^ set(numbers.to_dict())
    return found + [f"{path}{name}" for name in undeclared if name in numbers.to_dict()]


JOB = apus.Scenario(
    duration="2ms",
    topology=apus.star(hosts=4, rate="100Gbps", delay="1us", buffer="4MB"),
    algorithm=apus.Swift(),
    workloads=[apus.all_reduce(name="sum", size="64kB")],
)


@pytest.fixture(scope="module")
def measured() -> summary.Summary:
    return apus.run(MEASURED).summary


def test_every_number_has_its_declared_type(measured: summary.Summary, incast: Path) -> None:
    assert wrong(measured) == []
    assert wrong(apus.run(incast).summary) == []


def test_a_job_has_numbers_by_its_place(incast: Path) -> None:
    (run,) = apus.run(JOB)
    assert wrong(run.summary) == []
    (job,) = run.summary.jobs
    assert job.completion_us is not None
    # Each rank sends three quarters of the array twice, 96 kB at 12.5 GB/s.
    assert job.completion_us > 7.68
    assert run.summary["jobs.0.completion_us"] == job.completion_us
    for name in ("jobs.1.completion_us", "jobs.-1.completion_us", "jobs.first"):
        with pytest.raises(KeyError, match=name):
            _ = run.summary[name]
    without = apus.run(incast).summary
    assert (list(without.jobs), without.ports) == ([], {})
    # The ports belong to this summary alone.
    assert without.ports is not apus.run(incast).summary.ports


def test_named_parts_are_attributes(measured: summary.Summary) -> None:
    assert measured.workload["bulk"].ops > 0
    assert measured.workload["small"].size["0"].op_latency_us.count > 0
    assert measured.ports["edge"].class_["low"].windows > 0
    queue = measured.span["queue"].queue_us
    assert queue is not None
    assert queue.count == 100
    assert measured.span["queue"].share is None


def test_numbers_have_the_names_that_checks_use(measured: summary.Summary) -> None:
    assert measured["goodput_gbps"] == measured.goodput_gbps
    assert measured["op_latency_us.lower.p99"] == measured.op_latency_us.lower.p99
    assert measured["workload.small.size.0.slowdown.p50"] is not None
    for name in ("goodput", "op_latency_us.p98", "goodput_gbps.p50"):
        with pytest.raises(KeyError, match=name):
            _ = measured[name]
