"""Types of the native module. The tests compare them with the module (stubtest)."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeVar, final

from typing_extensions import Buffer

from apus._own import OwnAlgorithm
from apus._types import (
    AlgorithmDeclaration,
    ContestOptions,
    HostOptions,
    ReadOptions,
    RunOptions,
    TargetOptions,
)

__all__ = [
    "AckEvent",
    "Allowance",
    "Compared",
    "Connection",
    "Executor",
    "FlowInfo",
    "Host",
    "LossEvent",
    "Op",
    "Outcome",
    "PacketSizeEvent",
    "Point",
    "Region",
    "Run",
    "Scenario",
    "SendInfo",
    "SignalEvent",
    "SweepStore",
    "Table",
    "TimeoutEvent",
    "__build__",
    "__version__",
    "algorithm_parameters",
    "compare",
    "declarations",
    "explain",
    "make_key",
    "register_algorithm",
    "replay",
    "tune_target",
    "unit_of_metric",
]

__build__: str
__version__: str

_T_co = TypeVar("_T_co", covariant=True)
_Row = TypeVar("_Row")

def compare(
    name: str,
    text: str | None,
    contest: ContestOptions,
    options: RunOptions,
    on_progress: Callable[[float, str], None] | None = None,
) -> Compared: ...
def declarations() -> str: ...
def explain(name: str) -> str: ...
def replay(
    make: Callable[..., _Row], algorithm: str, profile: str | None, set: list[str], trace: str
) -> list[_Row]: ...
def register_algorithm(
    name: str, cls: type[OwnAlgorithm], declaration: AlgorithmDeclaration
) -> None: ...
def algorithm_parameters(name: str, given: Sequence[tuple[str, str]]) -> dict[str, object]: ...
def make_key(path: str, name: str | None = None, group: str | None = None) -> str | None: ...

@final
class Scenario:
    """A scenario that was read and checked. It does not change."""

    @staticmethod
    def open(file: str, options: ReadOptions) -> Scenario: ...
    @staticmethod
    def open_experiment(name: str, options: ReadOptions) -> Scenario: ...
    @staticmethod
    def read(name: str, text: str, options: ReadOptions) -> Scenario: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str | None: ...
    @property
    def source(self) -> str | None: ...
    @property
    def variants(self) -> list[str | None]: ...
    @property
    def quick(self) -> list[str]: ...
    def plan(self) -> list[tuple[str, int, float, int, str]]: ...
    def estimate(self) -> list[tuple[int, float, int, float, bool]]: ...
    def run(
        self,
        seeds: int,
        record: bool,
        options: RunOptions,
        on_progress: Callable[[float, str], None] | None = None,
    ) -> Outcome: ...

@final
class Run:
    """A finished run, or the part of it before an interruption."""

    @property
    def name(self) -> str: ...
    @property
    def variant(self) -> str | None: ...
    @property
    def value(self) -> float | None: ...
    @property
    def seed(self) -> int: ...
    @property
    def interrupted(self) -> bool: ...
    def summary_json(self) -> str: ...
    def cost_json(self) -> str: ...
    def text(self) -> str: ...

@final
class Table:
    """A table of one run or of several."""

    @staticmethod
    def of(runs: list[Run], name: str, keys: bool) -> Table: ...
    @property
    def name(self) -> str: ...
    @property
    def row(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    def unit(self, column: str) -> str: ...
    def values(self, columns: Sequence[str]) -> list[list[Any]]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Outcome:
    """What became of the runs of a call."""

    @property
    def runs(self) -> list[Run]: ...
    @property
    def failures(self) -> list[str]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def checks_json(self) -> str | None: ...
    @property
    def checks_text(self) -> str: ...
    @property
    def raised(self) -> BaseException | None: ...
    @property
    def cause(self) -> BaseException | None: ...

@final
class Compared:
    """The result of a comparison."""

    @property
    def json(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def html(self) -> str: ...
    @property
    def failures(self) -> list[str]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def raised(self) -> BaseException | None: ...

@final
class AckEvent:
    """An acknowledgement arrived.

    It acknowledged at least one packet for the first time, or gave an RTT of a packet that had been
    declared lost.
    """

    def __new__(
        cls,
        *,
        now: float = ...,
        rtt: float = ...,
        fabric_delay: float = ...,
        endpoint_delay: float = ...,
        hops: int = ...,
        acked_packets: int = ...,
        marked_packets: int = ...,
        acked_seq: int = ...,
        next_seq: int = ...,
        in_flight: int = ...,
    ) -> AckEvent: ...
    @property
    def now(self) -> float:
        """Arrival, in seconds on the clock of the transport."""
    @property
    def rtt(self) -> float:
        """End-to-end RTT in seconds (Swift §3.1)."""
    @property
    def fabric_delay(self) -> float:
        """RTT without the delays of the endpoints, in seconds (Swift §3.3)."""
    @property
    def endpoint_delay(self) -> float:
        """Time in the stacks of both endpoints, in seconds (Swift §3.3)."""
    @property
    def hops(self) -> int:
        """Switches on the forward path."""
    @property
    def acked_packets(self) -> int:
        """Packets acknowledged for the first time; 0 for one that was declared lost."""
    @property
    def marked_packets(self) -> int:
        """Acknowledged packets that carried an ECN mark."""
    @property
    def acked_seq(self) -> int:
        """The largest packet number acknowledged."""
    @property
    def next_seq(self) -> int:
        """The number the next packet sent will carry."""
    @property
    def in_flight(self) -> int:
        """Packets in flight after this acknowledgement."""

@final
class LossEvent:
    """Packets were declared lost from holes in the acknowledgements (Swift §3.6)."""

    def __new__(
        cls,
        *,
        now: float = ...,
        lost_packets: int = ...,
        lost_seq: int = ...,
        next_seq: int = ...,
        in_flight: int = ...,
    ) -> LossEvent: ...
    @property
    def now(self) -> float:
        """Time in seconds."""
    @property
    def lost_packets(self) -> int:
        """Number of lost packets."""
    @property
    def lost_seq(self) -> int:
        """The largest packet number among them."""
    @property
    def next_seq(self) -> int:
        """The number the next packet sent will carry."""
    @property
    def in_flight(self) -> int:
        """Packets in flight after the loss."""

@final
class TimeoutEvent:
    """The retransmission timeout expired."""

    def __new__(
        cls,
        *,
        now: float = ...,
        next_seq: int = ...,
        is_same_flight: bool = ...,
    ) -> TimeoutEvent: ...
    @property
    def now(self) -> float:
        """Time in seconds."""
    @property
    def next_seq(self) -> int:
        """The number the next packet sent will carry."""
    @property
    def is_same_flight(self) -> bool:
        """Whether the packets had left before the last timeout, where each has its own."""

@final
class SignalEvent:
    """A switch reported congestion to the source of a packet."""

    def __new__(
        cls,
        *,
        now: float = ...,
        rtt: float = ...,
        seq: int = ...,
        queue: int = ...,
        link_rate: float = ...,
        in_flight: int = ...,
    ) -> SignalEvent: ...
    @property
    def now(self) -> float:
        """Time in seconds."""
    @property
    def rtt(self) -> float:
        """From the packet's departure to the signal's arrival, in seconds."""
    @property
    def seq(self) -> int:
        """The packet that met the congestion."""
    @property
    def queue(self) -> int:
        """Bytes in the congested port."""
    @property
    def link_rate(self) -> float:
        """Rate of the congested link in bits per second."""
    @property
    def in_flight(self) -> int:
        """Packets in flight."""

@final
class PacketSizeEvent:
    """The size of full packets has changed: the path's MTU was discovered or is another."""

    def __new__(
        cls,
        *,
        payload_before: int = ...,
        payload: int = ...,
        packet: int = ...,
    ) -> PacketSizeEvent: ...
    @property
    def payload_before(self) -> int:
        """Payload bytes of a full packet until now."""
    @property
    def payload(self) -> int:
        """Payload bytes of a full packet."""
    @property
    def packet(self) -> int:
        """Wire bytes of a full packet."""

@final
class SendInfo:
    """A data packet is about to leave."""

    def __new__(
        cls,
        *,
        now: float = ...,
        seq: int = ...,
        pending: int = ...,
        in_flight: int = ...,
        is_windowed: bool = ...,
    ) -> SendInfo: ...
    @property
    def now(self) -> float:
        """Time in seconds."""
    @property
    def seq(self) -> int:
        """Packet number."""
    @property
    def pending(self) -> int:
        """Payload bytes that wait behind this packet."""
    @property
    def in_flight(self) -> int:
        """Packets in flight without this one."""
    @property
    def is_windowed(self) -> bool:
        """Whether it counts against the window: data does, the request of a read does not."""

@final
class FlowInfo:
    """Properties of its host and of its packets that a flow uses."""

    def __new__(
        cls,
        *,
        line_rate: float = ...,
        payload: int = ...,
        packet: int = ...,
        control: int = ...,
        seed: int = ...,
    ) -> FlowInfo: ...
    @property
    def line_rate(self) -> float:
        """Rate of the host's link in bits per second."""
    @property
    def payload(self) -> int:
        """Payload bytes of a full data packet."""
    @property
    def packet(self) -> int:
        """Wire bytes of a full data packet."""
    @property
    def control(self) -> int:
        """Wire bytes of a control packet."""
    @property
    def seed(self) -> int:
        """Seed of the flow's random numbers. An algorithm draws from no other stream."""

@final
class Allowance:
    """The rate at which a flow may send: a window, and a pace within it."""

    def __new__(
        cls, window: float, *, delay: float | None = None, rate: float | None = None
    ) -> Allowance:
        """Return an allowance.

        Args:
            window: Window in packets, above 0. Below 1 it admits one packet. It may be infinite if
                there is a pace.
            delay: Time between packets in seconds.
            rate: Rate of wire bytes in bits per second.

        """
    @property
    def window(self) -> float:
        """Window in packets."""
    @property
    def delay(self) -> float | None:
        """Time between packets in seconds, if they are paced so."""
    @property
    def rate(self) -> float | None:
        """Rate in bits per second, if packets are paced so."""

@final
class Op(Generic[_T_co]):
    """Something that ends with a value or an exception: `op.wait()` blocks, `await op` does not.

    An op that was submitted goes on if nobody waits for it. Other waits (for a connection, a
    message, a close) begin when they are waited for, and lose nothing if they are given up.
    """

    def wait(self, timeout: float | None = None) -> _T_co:
        """Wait for the end.

        Args:
            timeout: Seconds after which the call gives up waiting, with `TimeoutError`; the op goes
                on. 0 or less looks once, and without it the call has no limit.

        Raises:
            RuntimeError: An accept hook or an algorithm waits for its own host, whose engine runs
                it.

        """
    def cancel(self) -> None:
        """Give the op up. It ends soon, mostly with an exception."""
    @property
    def done(self) -> bool:
        """Whether its end is known here."""
    def __await__(self) -> Generator[object, None, _T_co]: ...
    def __class_getitem__(cls, key: object) -> object: ...

@final
class Connection:
    """A connection to a peer. It closes when its last reference is dropped, or by `close`.

    The arguments `flow` and `timeout` of its ops are the flow's index, and the time in seconds
    after which the op is given up. `OpError.may_be_applied` says whether the peer may have applied
    an op that failed.
    """

    @property
    def peer(self) -> str:
        """The peer's address."""
    @property
    def peer_key(self) -> str | None:
        """The public key that the peer proved; `None` under a shared key alone and without keys."""
    @property
    def peer_name(self) -> str | None:
        """The name of this key in the key file."""
    @property
    def flows(self) -> int:
        """Number of flows."""
    @property
    def ended(self) -> str | None:
        """How the connection ended; `None` if it has not."""
    @property
    def max_message(self) -> int:
        """Maximum length in bytes of a message that the peer accepts."""
    @property
    def max_ops(self) -> int:
        """Maximum number of outstanding ops per flow."""
    def source_ports(self) -> tuple[str | None, list[tuple[int, bool, list[int]]]]:
        """Why all packets leave by one source port, and the source ports.

        The reason is "off" (no balancer), "peer_too_old", "peer_accepts_one" or "unconfirmed" (a
        NAT or a firewall is in the way), and `None` if packets leave by several ports. A port is
        its UDP port, whether packets leave by it, and the numbers of packets sent, reported as
        arrived without and with an ECN mark, and lost, and of timeouts.
        """
    def write(
        self,
        region: int,
        address: int,
        data: Buffer,
        *,
        flow: int = ...,
        timeout: float | None = None,
    ) -> Op[None]:
        """Write to a region of the peer, by its key.

        `data` is not copied: do not change it before the op has ended.
        """
    def read(
        self,
        region: int,
        address: int,
        length: int,
        *,
        flow: int = ...,
        timeout: float | None = None,
    ) -> Op[bytes]:
        """Read from a region of the peer."""
    def read_into(
        self,
        region: int,
        address: int,
        target: Buffer,
        *,
        flow: int = ...,
        timeout: float | None = None,
    ) -> Op[None]:
        """Fill a writable buffer from a region of the peer, without a copy."""
    def send(self, data: Buffer, *, flow: int = 0, timeout: float | None = None) -> Op[None]:
        """Send a message. It has ended when the peer's host has the message.

        `data` is not copied: do not change it before the op has ended.
        """
    def receive(self) -> Op[bytes]:
        """Take the next message of the peer."""
    def compare_and_swap(
        self,
        region: int,
        address: int,
        expected: int,
        new: int,
        *,
        flow: int = ...,
        timeout: float | None = None,
    ) -> Op[int]:
        """Replace a word of the peer if it is `expected`; returns the word before.

        A word is 8 bytes, little-endian, at a multiple of 8.
        """
    def fetch_add(
        self,
        region: int,
        address: int,
        delta: int,
        *,
        flow: int = ...,
        timeout: float | None = None,
    ) -> Op[int]:
        """Add to a word of the peer, modulo 2^64; returns the word before."""
    def close(self) -> Op[None]:
        """Close the connection after its last op, when it is waited for."""

@final
class Region:
    """Memory that peers use. `memoryview(region)` is the memory itself, without a copy or a lock.

    A view may show a peer's write in part. `read`, `write` and the ops on words lock the region.
    """

    @property
    def key(self) -> int:
        """The key by which peers name the region."""
    def set_peers(self, peers: Connection | Sequence[str]) -> None:
        """Set the peers that may use the region, which was registered with `peers`.

        When this returns, nothing is read or changed for a peer that has lost the right.
        """
    def __len__(self) -> int: ...
    def read(self, address: int, length: int) -> bytes:
        """Return a copy of bytes, which no peer changes meanwhile."""
    def write(self, address: int, data: Buffer) -> None:
        """Store bytes; no peer sees a part of them."""
    def load(self, address: int) -> int:
        """Return the word at an address."""
    def store(self, address: int, word: int) -> None:
        """Store a word."""
    def compare_and_swap(self, address: int, expected: int, new: int) -> int:
        """Replace a word if it is `expected`; returns the word before."""
    def fetch_add(self, address: int, delta: int) -> int:
        """Add to a word, modulo 2^64; returns the word before."""
    def close(self) -> None:
        """Withdraw the region, and wait until no engine uses its memory.

        In an accept hook or an algorithm, whose thread runs an engine of the host, it does not
        wait: the engines give up the answers to peers' reads, and then the memory.
        """
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Host:
    """The native part of `apus.Host`."""

    def __new__(cls, addresses: list[str], key_file: str | None, options: HostOptions) -> Host: ...
    @property
    def addresses(self) -> list[str]: ...
    def connect(self, peer: str, name: str | None, classes: list[int]) -> Op[Connection]: ...
    def accept(self) -> Op[Connection]: ...
    def register(
        self, memory: int | Buffer, access: str, peers: Connection | Sequence[str] | None
    ) -> Region: ...
    def set_keys(self, key_file: str) -> None: ...
    def drain(self, timeout: float) -> bool: ...
    def close(self) -> None: ...

@final
class Executor:
    """The ops that wait in an event loop of asyncio."""

    def __new__(cls) -> Executor: ...
    def fileno(self) -> int: ...
    def poll(self, op: Op[object], future: asyncio.Future[None]) -> tuple[object] | None: ...
    def forget(self, future: asyncio.Future[None]) -> None: ...
    def run(self) -> None: ...

@final
class Point:
    """A run of a sweep. It can be sent to another process (`apus._points`)."""

    @staticmethod
    def of(scenario: Scenario, folder: str) -> list[Point]: ...
    @staticmethod
    def restore(build: str, folder: str, variant: str | None, effective: str) -> Point: ...
    def parts(
        self,
    ) -> tuple[tuple[str, str, str | None, str], Sequence[tuple[str, type[OwnAlgorithm], str]]]: ...
    def with_seed(self, seed: int) -> Point: ...
    @property
    def variant(self) -> str | None: ...
    @property
    def seed(self) -> int: ...
    def effective(self) -> str: ...
    def run(
        self, options: RunOptions, on_tick: Callable[[], None] | None = None
    ) -> tuple[str | None, str | None]: ...
    @staticmethod
    def at_once(points: Sequence[Point], max_memory: str | None = None) -> int: ...

@final
class SweepStore:
    """The directory of a sweep's results, which the command `apus sweep --merge` reads."""

    @staticmethod
    def open(
        out: str,
        file: str,
        vary: Sequence[tuple[str, Sequence[str]]],
        points: Sequence[tuple[Sequence[str], Point]],
    ) -> SweepStore: ...
    def summary(self, place: int) -> str | None: ...
    def keep(self, place: int, point: Point, summary: str | None, failure: str | None) -> None: ...
    def write(self) -> None: ...

def tune_target(
    scenario: Scenario,
    wanted: TargetOptions,
    options: RunOptions,
    on_progress: Callable[[float, str], None] | None = None,
) -> tuple[str | None, str]: ...
def unit_of_metric(name: str) -> str: ...
