"""Results of runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from apus import _native


class Run:
    """The results of one run."""

    def __init__(self, native: _native.Run) -> None:
        self._native = native
        self._summary: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """Name of the scenario, and of its variant."""
        return self._native.name

    @property
    def variant(self) -> str | None:
        """Name of the variant; `None` if the scenario has none."""
        return self._native.variant

    @property
    def value(self) -> float | None:
        """Value of the variant, in microseconds, Gb/s or bytes if it has a unit."""
        return self._native.value

    @property
    def seed(self) -> int:
        """Seed of all random number streams."""
        return self._native.seed

    @property
    def interrupted(self) -> bool:
        """Whether the run ended before its time."""
        return self._native.interrupted

    @property
    def summary(self) -> dict[str, Any]:
        """All numbers of the run."""
        if self._summary is None:
            self._summary = json.loads(self._native.summary_json())
        return self._summary

    def __repr__(self) -> str:
        return f"Run({self.name!r}, seed={self.seed})\n{self._native.text()}"


class Result(Sequence[Run]):
    """The results of a call: its runs, variant by variant for each seed."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = tuple(runs)

    @property
    def summary(self) -> dict[str, Any]:
        """All numbers of the only run. Of several runs each has its own: `result[0].summary`."""
        return self._only().summary

    def _only(self) -> Run:
        if len(self._runs) == 1:
            return self._runs[0]
        raise ValueError(
            f"there are {len(self._runs)} runs, each with a summary of its own: result[0].summary"
        )

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Run]: ...
    def __getitem__(self, index: int | slice) -> Run | Sequence[Run]:
        return self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._runs))
