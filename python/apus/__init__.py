"""Datacenter congestion control that you can simulate and deploy."""

from apus import algorithms, topologies, workloads
from apus._native import Table, __version__
from apus._result import Result, Run
from apus._run import ApusWarning, run
from apus.algorithms import *  # noqa: F403
from apus.errors import ApusError, Interrupted, Problem, RunError, ScenarioError
from apus.scenarios import Scenario
from apus.topologies import *  # noqa: F403
from apus.workloads import *  # noqa: F403

__all__ = [
    "ApusError",
    "ApusWarning",
    "Interrupted",
    "Problem",
    "Result",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Table",
    "__version__",
    "run",
]
__all__ += algorithms.__all__
__all__ += topologies.__all__
__all__ += workloads.__all__
