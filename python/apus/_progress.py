"""Progress of a call on standard error: a line that is replaced, in terminals and notebooks."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from apus._types import Progress

_WIDTH = 20
"""Characters of the bar."""
_DELAY_S = 0.5
"""Real time before the bar appears: a call that ends sooner needs no bar."""


def in_notebook() -> bool:
    """Return whether the code runs in a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    if ipython is None:
        return False
    shell = ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


class Bar:
    """A bar with the completed share and an estimate of the remaining time."""

    def __init__(self) -> None:
        self._from = time.monotonic()
        self._shown = 0

    def __call__(self, share: float, text: str) -> None:
        """Show this share, from 0 to 1, and text."""
        if time.monotonic() - self._from < _DELAY_S:
            return
        full = round(share * _WIDTH)
        line = f"[{'=' * full}{' ' * (_WIDTH - full)}] {share:4.0%} {text}"
        # Spaces replace the rest of a longer line.
        sys.stderr.write(f"\r{line:<{self._shown}}")
        sys.stderr.flush()
        self._shown = len(line)

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            sys.stderr.write(f"\r{'':<{self._shown}}\r")
            sys.stderr.flush()
            self._shown = 0


class Reporter:
    """The `progress` argument of a call while the call lasts."""

    def __init__(self, progress: Progress) -> None:
        self._bar = None
        if progress is None:
            progress = sys.stderr.isatty() or in_notebook()
        if progress is True:
            self._bar = Bar()
        self.report: Callable[[float, str], None] | None = (
            self._bar if isinstance(progress, bool) else progress
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.clear()
