"""Scenarios as objects: their text as a file, and their errors by argument."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from apus._settings import Settings
from apus._toml import to_toml
from apus.errors import Problem, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Line(NamedTuple):
    text: str
    place: str
    """The argument from which the line comes, like `topology.k`."""


class Written(Settings):
    """A scenario that can be written as a file."""

    __slots__ = ()

    def to_toml(self) -> str:
        """Return the scenario as the text of a file."""
        return "".join(f"{line.text}\n" for line in self._lines())

    def _lines(self) -> Iterator[_Line]:
        tables: list[_Line] = []
        for key, value in self.settings.items():
            name = self.argument(key)
            part = self.part(name)
            match value:
                case dict() if value:
                    tables.append(_Line(f"[{key}]", name))
                    tables += _entries(value, name, part)
                case list() if value and all(isinstance(one, dict) for one in value):
                    for index, one in enumerate(value):
                        place = f"{name}[{index}]"
                        tables.append(_Line(f"[[{key}]]", place))
                        inner = part[index] if isinstance(part, (list, tuple)) else None
                        tables += _entries(one, place, inner)
                case _:
                    yield _Line(f"{key} = {to_toml(value, name)}", name)
        yield from tables

    def located(self, error: ScenarioError) -> ScenarioError:
        """Return an error in the text of the scenario with arguments in place of lines."""
        lines = list(self._lines())
        problems: list[tuple[str, int | None, int | None, str]] = []
        for problem in error.problems:
            if problem.source == self._call and problem.line is not None:
                place = lines[min(problem.line, len(lines)) - 1].place
                problems.append((f"{self._call}: {place}", None, None, problem.message))
            else:
                problems.append((problem.source, problem.line, problem.column, problem.message))
        text = "\n".join(str(Problem(*problem)) for problem in problems)
        return ScenarioError(text or str(error), problems)


def _entries(table: object, place: str, part: object) -> Iterator[_Line]:
    """Return the lines of a table, each value on one line."""
    if not isinstance(table, dict):
        return
    for key, value in table.items():
        name = part.argument(key) if isinstance(part, Settings) else key
        where = f"{place}.{name}"
        yield _Line(f"{_key(key)} = {to_toml(value, where)}", where)


def _key(key: str) -> str:
    bare = key.replace("-", "").replace("_", "")
    return key if bare.isascii() and bare.isalnum() else json.dumps(key)
