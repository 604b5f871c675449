"""Base of the classes of results: numbers by name, from JSON."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

Convert = Callable[[Any], Any]


class Numbers:
    """Results as attributes. `numbers["fabric_rtt_us.p99"]` is a number by its path."""

    _PARTS: ClassVar[Mapping[str, Convert]] = {}
    """Conversion of values that are not numbers or texts, by key."""

    def __init__(self, json: Mapping[str, Any]) -> None:
        """Take the values of a JSON object."""
        self._json = json
        for key, value in json.items():
            convert = self._PARTS.get(key)
            new = value if convert is None or value is None else convert(value)
            setattr(self, attribute(key), new)
        for key, convert in self._PARTS.items():
            if key not in json:
                # Of a part that the scenario does not name.
                missing = convert.none() if isinstance(convert, Each | Every) else None
                setattr(self, attribute(key), missing)

    def __getitem__(self, path: str) -> Any:  # noqa: ANN401 - of the type in the documentation
        """Return the result of this name, as checks name it: `op_latency_us.p99`."""
        value: Any = self._json
        for part in path.split("."):
            try:
                value = within(value, part)
            except KeyError:
                raise KeyError(path) from None
        return value

    def to_dict(self) -> Mapping[str, Any]:
        """Return all values as in summary.json."""
        return self._json

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Numbers):
            return NotImplemented
        return self._json == other._json

    __hash__ = None  # type: ignore[assignment]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *map(attribute, self._json)})

    def __repr__(self) -> str:
        values = ", ".join(f"{attribute(key)}={value!r}" for key, value in self._json.items())
        return f"{type(self).__name__}({values})"


class Each:
    """Conversion of every value of an object."""

    def __init__(self, convert: Convert) -> None:
        """Convert each value by this function."""
        self._convert = convert

    def __call__(self, json: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the object with converted values."""
        return {key: self._convert(value) for key, value in json.items()}

    def none(self) -> Mapping[str, Any]:
        """Return a new object for results that lack it."""
        return {}


class Every:
    """Conversion of every entry of a list."""

    def __init__(self, convert: Convert) -> None:
        """Convert each entry by this function."""
        self._convert = convert

    def __call__(self, json: Sequence[Any]) -> Sequence[Any]:
        """Return the list with converted entries."""
        return [self._convert(entry) for entry in json]

    def none(self) -> Sequence[Any]:
        """Return a new list for results that lack it."""
        return []


def within(value: object, key: str) -> Any:  # noqa: ANN401 - of the type in the documentation
    """Return the value under a key of an object, or under the number of an entry of a list.

    Raises:
        KeyError: There is no such value.
    """
    if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        return value[int(key)]
    if isinstance(value, dict) and key in value:
        return value[key]
    raise KeyError(key)


def attribute(key: str) -> str:
    """Return the name of the attribute of a key."""
    return f"{key}_" if keyword.iskeyword(key) else key


class Distribution(Numbers):
    """A set of values in the unit of the name. A value that was not measured is `None`."""

    count: int
    """Number of values."""
    mean: float | None
    """Exact mean."""
    min: float | None
    """Exact minimum."""
    p1: float | None
    """1st percentile, to 0.1 %."""
    p10: float | None
    """10th percentile, to 0.1 %."""
    p50: float | None
    """Median, to 0.1 %."""
    p90: float | None
    """90th percentile, to 0.1 %."""
    p99: float | None
    """99th percentile, to 0.1 %."""
    p99_9: float | None
    """99.9th percentile, to 0.1 %."""
    max: float | None
    """Exact maximum."""


class OpDistribution(Distribution):
    """A set of values of ops.

    A number is `None` if it is censored: unfinished ops leave bounds that differ by more than 1 %.
    """

    _PARTS: ClassVar[Mapping[str, Convert]] = {"lower": Distribution, "upper": Distribution}

    unfinished: int
    """Ops submitted in the measured phase that had not ended after the drain."""
    oldest_unfinished_us: float
    """Age of the oldest unfinished op; 0 if there are none."""
    lower: Distribution
    """Lower bounds: the unfinished ops had ended with the run."""
    upper: Distribution
    """Upper bounds: the unfinished ops never end; `None` is unbounded."""
