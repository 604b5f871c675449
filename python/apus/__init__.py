"""Datacenter congestion control that you can simulate and deploy."""

from apus import algorithms, topologies, workloads
from apus._checks import Check, Shown
from apus._compare import Comparison, compare
from apus._native import Table, __version__
from apus._replay import ReplayRow, explain, replay
from apus._result import Result, Run
from apus._run import ApusWarning, PlannedRun, reproduce, run, validate
from apus.algorithms import *  # noqa: F403
from apus.errors import ApusError, Interrupted, Problem, RunError, ScenarioError
from apus.scenarios import Scenario
from apus.topologies import *  # noqa: F403
from apus.workloads import *  # noqa: F403

__all__ = [
    "ApusError",
    "ApusWarning",
    "Check",
    "Comparison",
    "Interrupted",
    "PlannedRun",
    "Problem",
    "ReplayRow",
    "Result",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Shown",
    "Table",
    "__version__",
    "compare",
    "explain",
    "replay",
    "reproduce",
    "run",
    "validate",
]
__all__ += algorithms.__all__
__all__ += topologies.__all__
__all__ += workloads.__all__
