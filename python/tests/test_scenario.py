"""Scenarios as objects."""

import pickle
from pathlib import Path

import pytest

import apus


def incast(**arguments: object) -> apus.Scenario:
    scenario = apus.Scenario(
        duration="2ms",
        topology=apus.star(hosts=4, rate="100Gbps", delay="1us", buffer="4MB"),
        algorithm=apus.Swift(base_target="30us"),
        workloads=[apus.incast(size="64kB", receiver=0)],
    )
    return scenario.replace(**arguments)


def test_a_scenario_of_objects_runs() -> None:
    summary = apus.run(incast()).summary
    assert summary.busiest_port.name == "switch 0 -> host 0"
    assert summary.groups[0]["algorithm"] == "swift"


def test_a_scenario_is_written_as_a_file() -> None:
    assert incast(seed=7, packets={"payload": "1kB"}).to_toml() == (
        'duration = "2ms"\n'
        "seed = 7\n"
        "[topology]\n"
        'kind = "star"\n'
        "hosts = 4\n"
        'rate = "100Gbps"\n'
        'delay = "1us"\n'
        'buffer = "4MB"\n'
        "[packets]\n"
        'payload = "1kB"\n'
        "[algorithm]\n"
        'name = "swift"\n'
        'base_target = "30us"\n'
        "[[workload]]\n"
        'kind = "incast"\n'
        "receiver = 0\n"
        'size = "64kB"\n'
    )


def test_a_file_and_objects_give_equal_results(tmp_path: Path) -> None:
    fault = {"link": "switch 0 -> host 0", "kind": "loss", "probability": 0.01}
    scenario = incast(name="equal", faults=[fault])
    file = tmp_path / "equal.toml"
    file.write_text(scenario.to_toml())
    assert apus.run(file).summary == apus.run(scenario).summary


def test_several_algorithms_have_labels() -> None:
    scenario = incast(
        algorithm={"a": apus.Swift(), "b": apus.Cubic()},
        workloads=[
            apus.incast(size="64kB", receiver=0, algorithm="a"),
            apus.incast(size="64kB", receiver=1, algorithm="b"),
        ],
    )
    groups = apus.run(scenario).summary.groups
    assert [group["algorithm"] for group in groups] == ["a", "b"]


def test_flows_and_nested_tables_are_dictionaries() -> None:
    flows = apus.flows(
        flows=[{"from": 0, "to": 1}, {"from": 2, "to": 1, "start": "1ms"}], size="64kB"
    )
    topology = apus.leaf_spine(
        leaves=2,
        hosts_per_leaf=2,
        spines=1,
        rate="100Gbps",
        delay="1us",
        buffer="4MB",
        uplink={"rate": "400Gbps"},
        ecn={"threshold": "100kB"},
    )
    algorithm = apus.Dctcp()
    summary = apus.run(incast(topology=topology, algorithm=algorithm, workloads=[flows])).summary
    assert summary.busiest_port.name == "leaf 0 -> host 1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"duration": "2"}, "Scenario: duration: "),
        ({"topology": apus.star(hosts=0)}, "Scenario: topology.hosts: "),
        ({"algorithm": apus.Swift(base_target="x")}, "Scenario: algorithm.base_target: "),
        ({"algorithm": {"a": apus.Swift(ai=-1)}}, "Scenario: algorithm.a: "),
        (
            {"workloads": [apus.incast(size="64kB", class_="a")]},
            r"Scenario: workloads\[0\].class_: ",
        ),
        ({"faults": [{"kind": "down", "lin": "*"}]}, r"Scenario: faults\[0\].lin: "),
        ({"duration": {1, 2}}, "duration: {1, 2} is no value of a setting"),
    ],
)
def test_an_error_names_the_argument(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(apus.ScenarioError, match=message) as error:
        apus.run(incast(**arguments))
    assert all(problem.line is None for problem in error.value.problems)


def test_scenarios_are_values() -> None:
    assert incast() == incast()
    assert incast() != incast(seed=2)
    assert len({incast(), incast()}) == 1
    assert pickle.loads(pickle.dumps(incast())) == incast()
    with pytest.raises(TypeError, match="Scenario has no argument 'sed'"):
        incast(sed=2)
    assert repr(apus.Swift(base_target="30us")) == "Swift(base_target='30us')"
    assert eval(repr(incast()), vars(apus)) == incast()
