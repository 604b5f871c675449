"""Single algorithms: their reaction to a log, and their documentation."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from apus import _native
from apus._toml import assignments
from apus.algorithms import Algorithm

if TYPE_CHECKING:
    from apus._types import Settings


class ReplayRow(NamedTuple):
    """Visible state of an algorithm after an event; `None` if it has no such value."""

    time_ps: int
    """Time of the event."""
    event: str
    """"ack", "loss" or "timeout"."""
    target_delay_ps: int | None
    """The target with which an acknowledgement was compared; after a loss or timeout, the target of
    the resulting window."""
    fabric_cwnd: float | None
    """Fabric window in packets."""
    endpoint_cwnd: float | None
    """Endpoint window in packets."""
    cwnd: float
    """The congestion window that applies, in packets."""
    pacing_delay_ps: int
    """Time between two packets; 0 if the flow is not paced."""
    rto_ps: int
    """The retransmission timeout."""


def replay(
    algorithm: str | Algorithm,
    trace: str | os.PathLike[str],
    *,
    profile: str | None = None,
    set: Settings | None = None,  # noqa: A002 - the name of the command's option
) -> list[ReplayRow]:
    """Feed a recorded list of events to an algorithm and return its state after each.

    `polars.DataFrame(apus.replay("swift", "log.csv"))` is a table of the states.

    Args:
        algorithm: Name of the algorithm, or the algorithm with its parameters.
        trace: Log file, CSV with the columns that `apus replay --help` lists.
        profile: Profile of the algorithm; its first one if not given.
        set: Parameters that replace those of the profile: `{"base_target": "30us"}`.

    Raises:
        ScenarioError: The algorithm or a parameter is unknown, or the log has an error.
    """
    parameters: dict[str, object] = {}
    if isinstance(algorithm, Algorithm):
        parameters = dict(algorithm.settings)
        algorithm = str(parameters.pop("name"))
        own = parameters.pop("profile", None)
        profile = str(own) if profile is None and own is not None else profile
    given = {**parameters, **(set or {})}
    return _native.replay(
        ReplayRow,
        algorithm,
        profile,
        assignments(given),  # type: ignore[arg-type]
        os.fspath(trace),
    )


def explain(name: str) -> str:
    """Return the explanation of an algorithm, a path policy, a result or a scenario.

    Raises:
        ScenarioError: The name is unknown; the message suggests a similar one.
    """
    return _native.explain(name)
