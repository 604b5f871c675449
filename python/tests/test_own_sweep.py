"""Algorithms in Python in sweeps: in other processes, in stores, and in memory."""

import functools
import gc
import json
import multiprocessing
import weakref
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from test_own_algorithm import Constant

import apus
from apus import parameters
from apus._code import hash_of

VARY: dict[str, list[Any]] = {"algorithm.window": [1, 8]}


def constant(incast: Path) -> Path:
    """Return a scenario with the algorithm `Constant`."""
    apus.algorithm("constant-in-python", Constant)
    text = incast.read_text().replace('name = "swift"', 'name = "constant-in-python"')
    incast.write_text(text)
    return incast


def test_a_class_is_sent_to_processes(incast: Path) -> None:
    scenario = constant(incast)
    expected = apus.sweep(scenario, VARY)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert list(apus.sweep(scenario, VARY, executor=pool)) == list(expected)
        # An object also names its class.
        own = apus.Scenario(
            duration="1ms",
            topology=apus.star(hosts=4, rate="100Gbps", delay="1us", buffer="4MB"),
            algorithm=Constant(),
            workloads=[apus.incast(size="64kB")],
        )
        (point,) = apus.sweep(own, {"algorithm.window": [2]}, executor=pool)
        assert point.done


def test_a_class_that_processes_cannot_import_is_an_error_that_says_so(incast: Path) -> None:
    class Local(Constant):
        """Defined within a function."""

    scenario = constant(incast)
    apus.algorithm("constant-in-python", Local)
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool,
        pytest.raises(apus.SweepError, match=r"`constant-in-python` cannot be sent .* top level"),
    ):
        apus.sweep(scenario, VARY, executor=pool)


def test_a_result_of_another_code_of_a_class_is_not_used(incast: Path, tmp_path: Path) -> None:
    class Doubled(Constant):
        """A constant window, to compare with the built-in algorithm of this name."""

        def allowance(self) -> float | apus.Allowance:
            return 2 * self.window

    scenario, out = constant(incast), tmp_path / "out"
    first = apus.sweep(scenario, VARY, out=out)
    assert apus.sweep(scenario, VARY, out=out).reused == 2
    apus.algorithm("constant-in-python", Doubled)
    second = apus.sweep(scenario, VARY, out=out)
    assert second.reused == 0
    assert first[0].summary != second[0].summary
    kept = [path for path in (out / "runs").glob("*.json") if path.name != "plan.json"]
    programs = {json.loads(path.read_text())["program"] for path in kept}
    assert len(programs) == 2


def test_the_hash_of_a_class_is_that_of_its_code() -> None:
    def made(gain: float) -> type[apus.OwnAlgorithm]:
        class Made(Constant):
            """Reads a constant of its class and one around it."""

            factor = 2.0

            def allowance(self) -> float | apus.Allowance:
                return gain * self.factor

        return Made

    def code(cls: type) -> str:
        return hash_of(cls, apus.OwnAlgorithm)

    assert code(made(1.0)) == code(made(1.0))
    assert code(made(1.0)) != code(made(2.0))
    changed = made(1.0)
    changed.factor = 3.0  # type: ignore[attr-defined]
    assert code(changed) != code(made(1.0))


def test_code_behind_mixins_and_caches_is_part_of_the_hash() -> None:
    def made(gain: float) -> list[type[apus.OwnAlgorithm]]:
        class Mixin:
            def gain(self) -> float:
                return gain

        class Mixed(Constant, Mixin):
            """Has a base behind `OwnAlgorithm`."""

        class Cached(Constant):
            """Caches what it returns."""

            @functools.cache  # noqa: B019 - the object of a flow is small
            def gain(self) -> float:
                return gain

        class Lazy(Constant):
            """Computes an attribute once."""

            @functools.cached_property
            def gain(self) -> float:
                return gain

        return [Mixed, Cached, Lazy]

    for one, same, other in zip(made(1.0), made(1.0), made(2.0), strict=True):
        one_hash = hash_of(one, apus.OwnAlgorithm)
        assert one_hash == hash_of(same, apus.OwnAlgorithm)
        assert one_hash != hash_of(other, apus.OwnAlgorithm)


SCRIPT = """\
import apus
class Gain:
    value = 2.0
GAIN = Gain()
class Made(apus.OwnAlgorithm):
    def on_ack(self, event): pass
    def on_loss(self, event): pass
    def on_timeout(self, event): pass
    def allowance(self): return GAIN.value
"""


def test_a_script_has_the_same_hash_in_a_process_that_it_starts() -> None:
    def code(module: str) -> str:
        names: dict[str, Any] = {"__name__": module}
        exec(SCRIPT, names)
        return hash_of(names["Made"], apus.OwnAlgorithm)

    assert code("__mp_main__") == code("__main__")


def test_a_class_that_is_replaced_is_forgotten() -> None:
    def made(default: int) -> weakref.ref[type]:
        class Made(Constant):
            """A class of which there are several."""

            window = parameters.number(default, "window in packets", must="at least 1")

        apus.algorithm("made", Made)
        return weakref.ref(Made)

    classes = [made(4), made(4), made(8), made(4)]
    gc.collect()
    # Only the last class of each description is kept.
    assert [cls() is None for cls in classes] == [True, True, False, False]
