"""Algorithms in Python."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, Self

from apus import _native
from apus._code import hash_of
from apus._settings import Settings
from apus.algorithms import Algorithm
from apus.errors import ScenarioError
from apus.parameters import Parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apus._native import (
        AckEvent,
        Allowance,
        FlowInfo,
        LossEvent,
        PacketSizeEvent,
        SendInfo,
        SignalEvent,
        TimeoutEvent,
    )
    from apus._types import AlgorithmDeclaration, Value

_HOOKS = (
    "on_transmit",
    "on_idle",
    "on_signal",
    "on_packet_size",
    "on_timer",
    "rto",
    "path_label",
)
"""Methods that are called only if a class defines them."""

_CLASSES: dict[str, type[OwnAlgorithm]] = {}
"""The class to which each name of a scenario belongs."""
_REGISTERING = threading.RLock()
"""Held while a class is registered under a name, here and in the native module."""


class OwnAlgorithm(Algorithm, ABC):
    """Base of algorithms in Python: the sender half, which reacts to events and sets a window.

    A subclass declares its parameters as attributes (`apus.parameters`). An object that a user
    creates, such as `Mine(target="30us")`, specifies the algorithm and its parameters in a
    scenario. Each flow has an object of its own, with all parameters as attributes. The first
    method that is called on this object is `start`.

    Times are in seconds, sizes in bytes, rates in bits per second.
    """

    ecn: ClassVar[bool] = False
    """Whether switches may mark packets of the algorithm instead of dropping them."""
    source: ClassVar[str] = "own algorithm"
    """The publication that defines the algorithm."""

    def __init__(self, **parameters: Value) -> None:
        """Set the parameters that are given; others have their defaults."""
        given = [(key, _text(value)) for key, value in parameters.items()]
        self.__dict__.update(_native.algorithm_parameters(self.name(), given))
        super().__init__(type(self).__name__, {"name": self.name()}, {}, parameters)

    def start(self, flow: FlowInfo) -> None:
        """Begin a flow: initialise the state of the object."""

    @abstractmethod
    def on_ack(self, event: AckEvent) -> None:
        """Handle an acknowledgement."""

    @abstractmethod
    def on_loss(self, event: LossEvent) -> None:
        """Handle packets that were declared lost."""

    @abstractmethod
    def on_timeout(self, event: TimeoutEvent) -> None:
        """Handle the expiry of the retransmission timeout."""

    @abstractmethod
    def allowance(self) -> float | Allowance:
        """Return the window in packets, or an `Allowance` with a window and a pace.

        Called once after each event. The result must depend on events only.
        """

    def on_transmit(self, info: SendInfo) -> None:
        """Handle a data packet that is about to be sent."""

    def on_idle(self, now: float) -> None:
        """Handle an event after which the flow has no data to send."""

    def on_signal(self, event: SignalEvent) -> None:
        """Handle a congestion signal of a switch."""

    def on_packet_size(self, event: PacketSizeEvent) -> None:
        """Handle a change of the size of full packets, which can occur over UDP.

        A window in packets should keep its size in bytes (RFC 8899 §3).
        """

    def next_timer(self) -> float | None:
        """Return the time of the next `on_timer`, on the clock of the events; `None` for no timer.

        Called only if the class defines `on_timer`. If the time has passed, `on_timer` is called at
        once.
        """
        return None

    def on_timer(self, now: float) -> None:
        """Handle the time of `next_timer`, which must then return a later time or `None`."""

    def rto(self) -> float:
        """Return the retransmission timeout.

        If a class does not define this method, the timeout follows from the smoothed RTT and the
        parameters `rto_gain`, `rto_multiplier`, `min_rto`, `max_rto` and `initial_rto`, which every
        algorithm in Python has.
        """
        raise NotImplementedError

    def path_label(self) -> int:
        """Return the label of the flow's path; another label selects another path."""
        return 0

    @classmethod
    def name(cls) -> str:
        """Return the name of the algorithm in scenarios.

        Without `apus.algorithm`, the name follows from the name of the class: `my_own` for `MyOwn`.
        If a class is defined again, such as by a cell of a notebook, the new class takes the name
        over.

        Raises:
            ScenarioError: Another class has the name.

        """
        name = cls.__dict__.get("_registered")
        if isinstance(name, str):
            if name in _CLASSES:
                _check_class(name, cls)
            else:
                # The class came from another process, by value.
                algorithm(name, cls)
            return name
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        with _REGISTERING:
            other = _CLASSES.get(name, cls)
            if _place(other) != _place(cls):
                raise ScenarioError(
                    f"{_place(cls)}: the name `{name}` is that of {_place(other)}; give this class "
                    f'a name of its own: apus.algorithm("another_name", {cls.__name__})'
                )
            algorithm(name, cls)
        return name

    @property
    def settings(self) -> dict[str, Value]:
        """The settings by key, as in a scenario file.

        Raises:
            ScenarioError: Another class has taken over the name of the class since then.

        """
        _check_class(self._fixed["name"], type(self))
        return super().settings

    def replace(self, **changes: object) -> Self:
        """Return a copy with other parameters; the value `None` removes a parameter."""
        given: dict[str, Any] = {**self._given, **changes}
        return type(self)(**{key: value for key, value in given.items() if value is not None})

    @classmethod
    def _for_flow(cls, parameters: Mapping[str, object], flow: FlowInfo) -> Self:
        """Return the object of a new flow."""
        own = cls.__new__(cls)
        own.__dict__.update(parameters)
        own.start(flow)
        return own

    def __reduce__(self) -> str | tuple[object, ...]:
        if not hasattr(self, "_arguments"):
            return super().__reduce__()
        # Another process imports the class and registers it there.
        return _restore, (type(self), self.name(), self._given)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        copied = self.__class__.__new__(self.__class__)
        # Its state may refer to it.
        memo[id(self)] = copied
        for name in Settings.__slots__:
            if hasattr(self, name):
                setattr(copied, name, deepcopy(getattr(self, name), memo))
        copied.__dict__.update(deepcopy(self.__dict__, memo))
        return copied

    def __repr__(self) -> str:
        given = self._given if hasattr(self, "_arguments") else {}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})"


def algorithm(name: str, cls: type[OwnAlgorithm]) -> None:
    """Register an algorithm in Python, so that scenarios of this process may name it.

    The class replaces a class that was registered under the same name. Scenarios that were read
    before keep the replaced class; scenarios with objects of the replaced class cannot be read any
    more. The description of an algorithm (its name and parameters) stays in memory until the
    process ends: about a kilobyte for each distinct description.

    Args:
        name: Name in scenarios: letters, digits, `_` and `-`.
        cls: Class of the algorithm.

    Raises:
        ScenarioError: A built-in algorithm has this name, or the class is incomplete.

    """
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise ScenarioError(f"name={name!r}: a name has letters, digits, `_` and `-` only")
    if missing := sorted(getattr(cls, "__abstractmethods__", ())):
        raise ScenarioError(f"{cls.__name__} lacks {', '.join(f'`{one}`' for one in missing)}")
    declared = _declaration(cls)
    with _REGISTERING:
        _native.register_algorithm(name, cls, declared)
        _CLASSES[name] = cls
        cls._registered = name  # type: ignore[attr-defined]


def _check_class(name: str, cls: type[OwnAlgorithm]) -> None:
    """Check that a name still belongs to a class."""
    now = _CLASSES[name]
    if now is cls:
        return
    if _place(now) == _place(cls):
        raise ScenarioError(
            f"{_place(cls)} was defined again since, and `{name}` is the new class; make the "
            "object again, or give each class a name of its own by apus.algorithm"
        )
    raise ScenarioError(
        f"{_place(cls)}: the name `{name}` is now that of {_place(now)}; give this class a name of "
        f'its own, apus.algorithm("another_name", {cls.__name__}), and make the object again'
    )


def _place(cls: type) -> str:
    """Return where a class is defined."""
    return f"{cls.__module__}.{cls.__qualname__}"


def _declaration(cls: type[OwnAlgorithm]) -> AlgorithmDeclaration:
    parameters = {
        key: value
        for base in reversed(cls.__mro__)
        for key, value in vars(base).items()
        if isinstance(value, Parameter)
    }
    return {
        "description": {
            "summary": (cls.__doc__ or cls.__name__).strip().splitlines()[0],
            "source": cls.source,
            "parameters": [
                {
                    "name": one.name,
                    "kind": one.kind,
                    "must": one.must,
                    "doc": one.doc,
                    "default": one.default,
                    "source": one.source,
                    "words": list(one.words),
                }
                for one in parameters.values()
            ],
        },
        "methods": [one for one in _HOOKS if getattr(cls, one) is not getattr(OwnAlgorithm, one)],
        "ecn": cls.ecn,
        "implementation": hash_of(cls, OwnAlgorithm),
    }


def _restore(cls: type[OwnAlgorithm], name: str, given: Mapping[str, Value]) -> OwnAlgorithm:
    """Return the settings of an algorithm that another process has created."""
    algorithm(name, cls)
    return cls(**given)


def _text(value: Value) -> str:
    """Return the value of a parameter as in a scenario file."""
    return str(value).lower() if isinstance(value, bool) else str(value)
