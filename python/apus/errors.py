"""Exceptions of the package. Their messages are those of the command `apus`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apus._compare import Comparison
    from apus._result import Result


@dataclass(frozen=True)
class Problem:
    """An error in a scenario: the place, the mistake, and a valid form."""

    source: str
    """The file, the option or the argument."""
    line: int | None
    """Line of the file, from 1 upwards; `None` if the source is not a file."""
    column: int | None
    """Column of the line, from 1 upwards; `None` if the source is not a file."""
    message: str
    """The mistake and a valid form."""

    def __str__(self) -> str:
        place = "" if self.line is None else f":{self.line}:{self.column}"
        return f"{self.source}{place}: {self.message}"


class ApusError(Exception):
    """Base of the errors of this package."""


class ScenarioError(ApusError, ValueError):
    """A scenario, or an argument of a call, is wrong. Nothing was run."""

    problems: tuple[Problem, ...]
    """All errors in the scenario; empty if its text was not read."""

    def __init__(
        self,
        message: str,
        problems: Iterable[tuple[str, int | None, int | None, str]] = (),
    ) -> None:
        problems = tuple(problems)
        super().__init__(message, problems)
        self.problems = tuple(Problem(*problem) for problem in problems)

    def __str__(self) -> str:
        return str(self.args[0])


class RunError(ApusError, RuntimeError):
    """A run failed, or ended because it made no progress."""

    result: Result | Comparison | None
    """The runs with results. A `Result` also has a run without progress, up to its end."""

    def __init__(self, message: str, result: Result | Comparison | None = None) -> None:
        super().__init__(message, result)
        self.result = result

    def __str__(self) -> str:
        return str(self.args[0])


class Interrupted(KeyboardInterrupt):
    """The user ended a call early (Ctrl-C)."""

    result: Result | Comparison
    """The complete runs, and the runs that the interruption ended, up to that time."""

    def __init__(self, message: str, result: Result | Comparison) -> None:
        super().__init__(message, result)
        self.result = result

    def __str__(self) -> str:
        return str(self.args[0])


class TransportError(ApusError):
    """Base of the errors of the transport over UDP."""


class HostError(TransportError):
    """A host cannot start: an address cannot be opened, or the system lacks something."""


class ConnectError(TransportError, ConnectionError):
    """A connection could not be opened."""


class ConnectionEndedError(TransportError, ConnectionError):
    """A connection has ended. An op that was submitted to it had no effect."""


class OpError(TransportError):
    """An op failed, or was not accepted."""

    may_be_applied: bool
    """Whether the peer may have applied the op, in part or in full."""

    def __init__(self, message: str, may_be_applied: bool) -> None:  # noqa: FBT001 - an attribute
        super().__init__(message, may_be_applied)
        self.may_be_applied = may_be_applied

    def __str__(self) -> str:
        return str(self.args[0])


class FullError(OpError):
    """The limit on outstanding ops is reached. Wait for an op, then try again."""
