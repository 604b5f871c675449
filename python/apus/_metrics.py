"""Metrics of summaries by their dotted names, such as `op_latency_us.p99`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apus import _native
from apus._numbers import within

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_METRICS = (
    "goodput_gbps",
    "loss_rate",
    "fabric_rtt_us.p50",
    "fabric_rtt_us.p99",
    "op_latency_us.p99",
    "op_latency_us.unfinished",
    "jain",
)
"""The metrics that the command `apus sweep` shows, after the times of jobs."""


def default_metrics(jobs: int) -> tuple[str, ...]:
    """Return the metrics that the command `apus sweep` shows of runs with this number of jobs."""
    return (*(f"jobs.{job}.completion_us" for job in range(jobs)), *DEFAULT_METRICS)


def value_of(summary: Mapping[str, Any], metric: str) -> float | None:
    """Return a number of a summary; `None` if it was not measured or is censored."""
    value: Any = summary
    for key in metric.split("."):
        try:
            value = within(value, key)
        except KeyError:
            return None
    return None if isinstance(value, dict | list | str) else value


def titled(metric: str) -> str:
    """Return a metric with its unit, as a title of an axis.

    Raises:
        ScenarioError: The metric is unknown.

    """
    unit = _native.unit_of_metric(metric)
    return f"{metric} [{unit}]" if unit else metric
