"""Charts: what they show, by their data and their specification, and one file of each library."""

from pathlib import Path
from typing import Any

import pytest

import apus

SWEPT = """\
duration = "1ms"
topology = { kind = "star", hosts = 4, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift" }
[[workload]]
kind = "poisson"
load = 0.1
size = "16kB"
[sweep]
key = "workload.load"
values = [0.1, 0.4]
"""


@pytest.fixture(scope="module")
def incast_result() -> apus.Result:
    scenario = apus.Scenario(
        duration="2ms",
        topology=apus.star(hosts=4, rate="100Gbps", delay="1us", buffer="4MB"),
        algorithm=apus.Swift(),
        workloads=[apus.incast(size="64kB")],
    )
    return apus.run(scenario, seeds=2)


@pytest.fixture(scope="module")
def load_result(tmp_path_factory: pytest.TempPathFactory) -> apus.Result:
    file = tmp_path_factory.mktemp("load") / "load.toml"
    file.write_text(SWEPT)
    return apus.run(file, seeds=2)


def titles(spec: dict[str, Any]) -> tuple[str, str]:
    """Return the titles of both axes of a chart."""
    layer = spec.get("spec", spec)
    layer = layer["layer"][-1] if "layer" in layer else layer
    return layer["encoding"]["x"]["title"], layer["encoding"]["y"]["title"]


def values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the data of a chart."""
    (data,) = spec["datasets"].values() if "datasets" in spec else [spec["data"]["values"]]
    return list(data)


@pytest.mark.parametrize(
    ("chart", "x", "y"),
    [
        ("rates", "time [us]", "goodput [Gb/s]"),
        ("windows", "time [us]", "cwnd [packets]"),
        ("rtt", "time [us]", "smoothed rtt [us]"),
        ("queues", "time [us]", "queue [B]"),
        ("cdf", "latency [us]", "share of ops"),
        ("slowdown", "size [B]", "slowdown"),
        ("links", "to", "from"),
    ],
)
def test_axes_of_a_chart_carry_units(
    incast_result: apus.Result, chart: str, x: str, y: str
) -> None:
    drawn = getattr(incast_result.plot, chart)()
    assert titles(drawn.to_dict()) == (x, y)
    figure = getattr(incast_result[0].plot, chart)(backend="matplotlib")
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == (x, y)


def test_rates_are_the_samples_of_the_largest_flows(incast_result: apus.Result) -> None:
    run = incast_result[0]
    sums: dict[int, float] = {}
    for flow, goodput in zip(*run.samples.values(["flow", "goodput_gbps"]), strict=True):
        sums[flow] = sums.get(flow, 0) + goodput
    shown = values(run.plot.rates(flows=2).to_dict())
    assert {row["flow"] for row in shown} == set(sums) - {min(sums, key=lambda flow: sums[flow])}
    times, samples = run.samples.values(["time_us", "goodput_gbps"])
    assert {(row["time_us"], row["goodput_gbps"]) for row in shown} <= set(
        zip(times, samples, strict=True)
    )
    (chosen,) = {row["flow"] for row in values(run.plot.rates(flows=[1]).to_dict())}
    assert chosen == 1
    with pytest.raises(apus.plot.PlotError, match="flow 99 has no samples"):
        run.plot.rates(flows=[99])


def test_a_distribution_counts_all_ops_and_grows_to_one(incast_result: apus.Result) -> None:
    shown = values(incast_result.plot.cdf().to_dict())
    shares = [row["share"] for row in shown]
    latencies = [row["latency_us"] for row in shown]
    assert shares == sorted(shares)
    assert latencies == sorted(latencies)
    assert shares[-1] == 1
    phases, all_latencies = incast_result.ops.values(["phase", "latency_us"])
    measured = [x for phase, x in zip(phases, all_latencies, strict=True) if phase == "measured"]
    assert latencies[-1] == max(measured)


def test_unfinished_ops_keep_a_distribution_below_one() -> None:
    scenario = apus.Scenario(
        duration="100us",
        drain="0us",
        topology=apus.star(hosts=4, rate="100Gbps", delay="1us", buffer="4MB"),
        algorithm=apus.Swift(),
        workloads=[apus.incast(size="64kB")],
    )
    result = apus.run(scenario)
    unfinished = result.summary.op_latency_us.unfinished
    count = result.summary.op_latency_us.lower.count
    assert 0 < unfinished < count
    shares = [row["share"] for row in values(result.plot.cdf().to_dict())]
    assert shares[-1] == pytest.approx(1 - unfinished / count)


def test_links_have_the_utilisation_of_ports(incast_result: apus.Result) -> None:
    shown = values(incast_result[0].plot.links().to_dict())
    busiest = max(shown, key=lambda row: row["utilisation"])
    assert (busiest["from"], busiest["to"]) == ("switch 0", "host 3")
    with pytest.raises(apus.plot.PlotError, match="'use' is no column of the table `ports`"):
        incast_result.plot.links("use")


def test_a_load_curve_has_medians_over_seeds_by_the_value_of_the_variant(
    load_result: apus.Result,
) -> None:
    chart = load_result.plot.load_curve("fabric_rtt_us.p99").to_dict()
    assert titles(chart) == ("value of the variant", "fabric_rtt_us.p99 [us]")
    shown = values(chart)
    assert [row["at"] for row in shown] == [0.1, 0.4]
    for row, variant in zip(shown, ("0.1", "0.4"), strict=True):
        own = [
            run.summary["fabric_rtt_us.p99"] for run in load_result if variant in str(run.variant)
        ]
        assert len(own) == 2
        assert (row["low"], row["high"]) == (min(own), max(own))
        assert row["value"] == pytest.approx(sum(own) / 2)


def test_a_load_curve_of_a_sweep_has_its_setting_with_unit(incast: Path) -> None:
    vary = {"algorithm.base_target": ["20us", "9us"], "topology.hosts": [3, 4]}
    sweep = apus.sweep(incast, vary)
    chart = sweep.plot.load_curve("goodput_gbps").to_dict()
    assert titles(chart) == ("algorithm.base_target [us]", "goodput_gbps [Gb/s]")
    assert [(row["at"], row["series"]) for row in values(chart)] == [
        (9, "topology.hosts=3"),
        (9, "topology.hosts=4"),
        (20, "topology.hosts=3"),
        (20, "topology.hosts=4"),
    ]
    with pytest.raises(apus.plot.PlotError, match=r"the sweep varies algorithm\.base_target"):
        sweep.plot.load_curve(x="duration")


def test_a_comparison_has_a_panel_per_metric(
    incast_result: apus.Result, load_result: apus.Result
) -> None:
    results = {"one": incast_result, "two": load_result[:2]}
    chart = apus.plot.comparison(results, "goodput_gbps", "op_latency_us.p50").to_dict()
    shown = values(chart)
    assert [(row["metric"], row["name"]) for row in shown] == [
        (metric, name)
        for metric in ("goodput_gbps [Gb/s]", "op_latency_us.p50 [us]")
        for name in ("one", "two")
    ]
    assert chart["resolve"]["scale"]["y"] == "independent"
    figure = load_result.plot.comparison(backend="matplotlib")
    assert [axes.get_title() for axes in figure.axes][1] == "op_latency_us.p50 [us]"
    with pytest.raises(apus.ScenarioError, match="did you mean `goodput_gbps`"):
        load_result.plot.comparison("goodput_gpbs")


def test_a_chart_without_data_names_the_setting_that_records_them(incast: Path) -> None:
    none = apus.run(incast, set={"record.flows": 0, "record.ports": 0, "record.ops": 0})
    for chart, setting in [
        (none.plot.rates, "`[record] flows`"),
        (none.plot.queues, "`[record] ports`"),
        (none.plot.cdf, "`[record] ops`"),
        (none.plot.slowdown, "`[record] ops`"),
    ]:
        with pytest.raises(apus.plot.PlotError) as error:
            chart()
        assert setting in str(error.value)
    with pytest.raises(apus.plot.PlotError, match=r"`\[sweep\]` in the scenario"):
        none.plot.load_curve()
    with pytest.raises(ValueError, match="record=True"):
        apus.run(incast, record=False).plot.rates()


def test_an_unknown_backend_is_an_error(incast_result: apus.Result) -> None:
    with pytest.raises(ValueError, match="must be 'altair' or 'matplotlib'"):
        incast_result.plot.rates(backend="plotly")


def test_both_libraries_write_files(load_result: apus.Result, tmp_path: Path) -> None:
    page, paper = tmp_path / "curve.svg", tmp_path / "queues.pdf"
    load_result.plot.load_curve("goodput_gbps").save(page)
    assert "goodput_gbps [Gb/s]" in page.read_text()
    load_result.plot.queues(backend="matplotlib").savefig(paper)
    assert paper.read_bytes().startswith(b"%PDF")
