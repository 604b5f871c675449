"""Checks of scenarios: measured numbers compared with bands."""

from __future__ import annotations

from typing import Literal

from apus._numbers import Numbers


class Shown(Numbers):
    """A number of an experiment: the median over the seeds, and its spread."""

    name: str
    """Name of the check; with the variant if the check applies to several variants one by one."""
    metric: str
    """Path of the metric in the summary."""
    kind: str | None
    """What the check shows: "Reproduction", "Shape", "Invariant" or "Formula"."""
    variant: str | None
    """The variant, if the number belongs to one."""
    value: float | None
    """The value of the variant, if it has one."""
    paper: float | None
    """The number of the publication."""
    measured: float | None
    """Median over the seeds; `None` if a run did not measure it, or if it is censored."""
    deviation_percent: float | None
    """Deviation of the median from the number of the publication, in percent of that number."""
    seeds: list[float]
    """Values by seed; empty if one of them is unknown."""
    censored: str | None
    """Reason why the value is censored: ops had not ended, so that only bounds are known."""
    unit: str
    """Unit of all these numbers."""
    low: float | None
    """Smallest accepted value."""
    high: float | None
    """Largest accepted value."""
    source: str
    """Place of the statement in the publication."""
    why: str | None
    """Reason why the measurement may differ."""


class Check(Shown):
    """A number of an experiment, and whether it is within its band."""

    verdict: Literal["pass", "fail", "differs", "stale"]
    """"differs": outside the band, as the scenario documents; "stale": within it, though the
    scenario documents a miss."""
    seeds_outside: int
    """Seeds whose own value is outside the band."""
    differs: str | None
    """The measured value and the likely cause, if the scenario documents a miss."""

    @property
    def passes(self) -> bool:
        """Whether the check agrees with its scenario: it passes, or differs as documented."""
        return self.verdict in {"pass", "differs"}
