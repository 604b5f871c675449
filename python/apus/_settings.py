"""Base of the classes whose arguments are the keys of scenario files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apus._types import Value


class Settings:
    """Settings of a part of a scenario: its arguments, `None` for those that were not given."""

    __slots__ = ("_arguments", "_call", "_fixed", "_keys")

    def __init__(
        self,
        call: str,
        fixed: Mapping[str, str],
        keys: Mapping[str, str],
        given: Mapping[str, object],
    ) -> None:
        """Keep the arguments that are not `None`.

        Args:
            call: Name of the class or function, as a user writes it.
            fixed: Settings that follow from this class or function.
            keys: Keys of the file, by argument, for arguments that have another name.
            given: All arguments by name, in order.
        """
        self._call = call
        self._fixed = fixed
        self._keys = keys
        self._arguments = dict(given)

    @property
    def _given(self) -> dict[str, object]:
        return {name: value for name, value in self._arguments.items() if value is not None}

    @property
    def settings(self) -> dict[str, Value]:
        """The settings by key, as in a scenario file."""
        given = {self._keys.get(name, name): plain(value) for name, value in self._given.items()}
        return {**self._fixed, **given}

    def replace(self, **changes: object) -> Self:
        """Return a copy with other arguments; the value `None` removes an argument."""
        for name in changes.keys() - self._arguments.keys():
            raise TypeError(f"{self._call} has no argument {name!r}")
        copy = object.__new__(type(self))
        arguments = {**self._arguments, **changes}
        Settings.__init__(copy, self._call, self._fixed, self._keys, arguments)
        return copy

    def argument(self, key: str) -> str:
        """Return the name of the argument of a key of the file."""
        return next((name for name, own in self._keys.items() if own == key), key)

    def part(self, argument: str) -> object:
        """Return the value of an argument; `None` if it was not given."""
        return self._given.get(argument)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Settings):
            return NotImplemented
        # Two modules may have classes of one name.
        return (
            type(self) is type(other) and self._call == other._call and self._given == other._given
        )

    def __hash__(self) -> int:
        return hash((self._call, repr(self._given)))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._given.items())
        return f"{self._call}({given})"


def plain(value: object) -> Value:
    """Return a value with plain settings in place of objects."""
    match value:
        case Settings():
            return value.settings
        case dict():
            return {key: plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case _:
            # Of another type: the writer of TOML says so.
            return value  # type: ignore[return-value]
