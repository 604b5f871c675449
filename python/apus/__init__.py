"""Datacenter congestion control that you can simulate and deploy."""

from apus._native import __version__
from apus._result import Result, Run
from apus._run import ApusWarning, run
from apus.errors import ApusError, Interrupted, Problem, RunError, ScenarioError

__all__ = [
    "ApusError",
    "ApusWarning",
    "Interrupted",
    "Problem",
    "Result",
    "Run",
    "RunError",
    "ScenarioError",
    "__version__",
    "run",
]
