"""Types that several modules share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

Time = str
"""A time with its unit: "25us"; units are ps, ns, us, ms and s."""

Rate = str
"""A rate with its unit: "100Gbps"; units are bps, kbps, Mbps, Gbps and Tbps."""

Size = str
"""A size with its unit: "64KiB"; units are B, kB, MB, GB, TB, KiB, MiB, GiB and TiB."""

Value = str | int | float | bool | Sequence["Value"] | Mapping[str, "Value"]
"""A value of a setting. Quantities are texts with their unit, such as "20us"."""

Settings = Mapping[str, Value]
"""Settings by dotted key, such as `{"algorithm.base_target": "20us"}`."""

Progress = bool | Callable[[float, str], None] | None
"""`True`: show a bar; `False`: none; `None`: a bar in terminals and notebooks. A function is called
at intervals with the completed share, from 0 to 1, and a description."""


class ReadOptions(TypedDict):
    """How the native module reads a scenario."""

    set: Sequence[str]
    seed: int | None
    variant: str | None
    quick: bool
    max_memory: str | None


class RunOptions(TypedDict):
    """How the native module executes runs."""

    threads: int | None
    watchdog: str
    max_memory: str | None


class ContestOptions(TypedDict):
    """What the native module compares, and how."""

    algorithms: Sequence[str]
    set: Sequence[str]
    variant: str | None
    seeds: int
    metrics: Sequence[str]
    tune_each: bool
    objective: str
    keep: float
    tune_values: int
    tune_seeds: int


class TargetOptions(TypedDict):
    """How the native module searches for a base target."""

    set: Sequence[str]
    algorithm: str | None
    keep: float
    seeds: int


class ParameterDeclaration(TypedDict):
    """A parameter of an algorithm in Python."""

    name: str
    kind: str
    must: str
    doc: str
    default: str
    source: str
    words: Sequence[str]


class AlgorithmDescription(TypedDict):
    """The part of a declaration that stays until the process ends."""

    summary: str
    source: str
    parameters: Sequence[ParameterDeclaration]


class AlgorithmDeclaration(TypedDict):
    """An algorithm in Python, as the native module registers it."""

    description: AlgorithmDescription
    methods: Sequence[str]
    ecn: bool
    implementation: str


Accept = Callable[[str, str | None, str | None], str | None]
"""Gets address, public key and name of a peer; returns the reason for a refusal, or `None`."""


class HostOptions(TypedDict):
    """Settings of a host; `None` stands for the default."""

    mode: str
    engines: int
    algorithm: str | None
    profile: str | None
    parameters: Sequence[tuple[str, str]]
    behind_switch: bool
    line_rate: str | None
    max_mtu: int | None
    max_flows: int | None
    max_ops: int | None
    max_message: int | None
    max_queued_bytes: int | None
    max_queued_messages: int | None
    handshake_timeout: str | None
    idle_timeout: str | None
    cipher: str | None
    accept: Accept | None
    accept_unlisted: bool
    max_sessions: int | None
    max_pending: int | None
    quota_sessions: int | None
    quota_pending: int | None
    quota_queued_bytes: int | None
    quota_ops: int | None
    handshake_rate: int | None
    balancer: str | None
    ports: int | None
    source_port: int | None
    accept_ports: int | None
    range: int | None
    ack_path: str | None
    loss: str | None
    loss_delay: str | None
