"""Parameters of algorithms in Python: attributes of the class, which scenarios set by name.

Values are read as in scenario files. Objects of the class have them as numbers: times in seconds,
sizes in bytes, rates in bits per second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Literal, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Parameter", "choice", "count", "flag", "number", "rate", "size", "time"]

T_co = TypeVar("T_co", covariant=True)

Must = Literal[
    "",
    "0 or more",
    "above 0",
    "at least 1",
    "above 0 and at most 1",
    "above 0 and below 1",
    "between 0 and 1",
]
"""Range of a parameter."""


class Parameter(Generic[T_co]):
    """A parameter of an algorithm in Python; see the functions of this module."""

    def __init__(  # noqa: PLR0917 - called by the functions below
        self,
        kind: str,
        default: str,
        doc: str,
        must: Must = "",
        source: str = "",
        words: Sequence[str] = (),
    ) -> None:
        self.kind = kind
        self.default = default
        self.doc = doc
        self.must = must
        self.source = source
        self.words = tuple(words)
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Parameter[T_co]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T_co: ...
    def __get__(self, instance: object, owner: type) -> Parameter[T_co] | T_co:
        if instance is None:
            return self
        # The value itself is an attribute of the object, which Python finds first.
        raise AttributeError(f"`{self.name}` has no value before OwnAlgorithm.__init__ was called")


def number(
    default: float, doc: str, *, must: Must = "", source: str = "own choice"
) -> Parameter[float]:
    """Return a parameter that is a number without a unit."""
    return Parameter("number", repr(float(default)), doc, must, source)


def count(default: int, doc: str, *, must: Must = "", source: str = "own choice") -> Parameter[int]:
    """Return a parameter that is a whole number."""
    return Parameter("count", str(default), doc, must, source)


def time(
    default: str, doc: str, *, must: Must = "", source: str = "own choice"
) -> Parameter[float]:
    """Return a parameter that is a time, like "20us"; its value is in seconds."""
    return Parameter("time", default, doc, must, source)


def size(default: str, doc: str, *, must: Must = "", source: str = "own choice") -> Parameter[int]:
    """Return a parameter that is a size, like "64KiB"; its value is in bytes."""
    return Parameter("size", default, doc, must, source)


def rate(
    default: str, doc: str, *, must: Must = "", source: str = "own choice"
) -> Parameter[float]:
    """Return a parameter that is a rate, like "10Gbps"; its value is in bits per second."""
    return Parameter("rate", default, doc, must, source)


def flag(
    default: bool,  # noqa: FBT001 - the value of the parameter
    doc: str,
    *,
    source: str = "own choice",
) -> Parameter[bool]:
    """Return a parameter that is true or false."""
    return Parameter("flag", str(default).lower(), doc, source=source)


def choice(
    default: str, words: Sequence[str], doc: str, *, source: str = "own choice"
) -> Parameter[str]:
    """Return a parameter that is one of several words."""
    return Parameter("choice", default, doc, source=source, words=words)
