"""Datacenter congestion control that you can simulate and deploy."""

from apus import algorithms, parameters, plot, topologies, workloads
from apus._checks import Check, Shown
from apus._compare import Comparison, compare
from apus._native import (
    AckEvent,
    Allowance,
    FlowInfo,
    LossEvent,
    PacketSizeEvent,
    SendInfo,
    SignalEvent,
    Table,
    TimeoutEvent,
    __build__,
    __version__,
)
from apus._own import OwnAlgorithm, algorithm
from apus._points import SweepPoint
from apus._replay import ReplayRow, explain, replay
from apus._result import Result, Run
from apus._run import ApusWarning, Estimate, PlannedRun, reproduce, run, validate
from apus._sweep import Sweep, SweepError, SweepInterrupted, sweep
from apus._target import TargetTuning, tune_target
from apus._transport import Connection, Host, Op, Region, make_key
from apus._tune import Range, Trial, TuneError, Tuning, tune
from apus.algorithms import *  # noqa: F403
from apus.errors import (
    ApusError,
    ConnectError,
    ConnectionEndedError,
    FullError,
    HostError,
    Interrupted,
    OpError,
    Problem,
    RunError,
    ScenarioError,
    TransportError,
)
from apus.scenarios import Scenario
from apus.topologies import *  # noqa: F403
from apus.workloads import *  # noqa: F403

__all__ = [
    "AckEvent",
    "Allowance",
    "ApusError",
    "ApusWarning",
    "Check",
    "Comparison",
    "ConnectError",
    "Connection",
    "ConnectionEndedError",
    "Estimate",
    "FlowInfo",
    "FullError",
    "Host",
    "HostError",
    "Interrupted",
    "LossEvent",
    "Op",
    "OpError",
    "OwnAlgorithm",
    "PacketSizeEvent",
    "PlannedRun",
    "Problem",
    "Range",
    "Region",
    "ReplayRow",
    "Result",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "SendInfo",
    "Shown",
    "SignalEvent",
    "Sweep",
    "SweepError",
    "SweepInterrupted",
    "SweepPoint",
    "Table",
    "TargetTuning",
    "TimeoutEvent",
    "TransportError",
    "Trial",
    "TuneError",
    "Tuning",
    "__build__",
    "__version__",
    "algorithm",
    "compare",
    "explain",
    "make_key",
    "parameters",
    "plot",
    "replay",
    "reproduce",
    "run",
    "sweep",
    "tune",
    "tune_target",
    "validate",
]
__all__ += algorithms.__all__
__all__ += topologies.__all__
__all__ += workloads.__all__
