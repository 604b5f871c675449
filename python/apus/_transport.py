"""The transport over UDP between real processes."""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING, Literal, NoReturn, Self
from weakref import WeakSet

from apus import _native
from apus.errors import ScenarioError, TransportError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Buffer

    from apus._native import Connection, Op, Region
    from apus._types import Accept, HostOptions, Value
    from apus.algorithms import Algorithm
else:

    class Missing:
        """Placeholder for a class of the transport in a build without the transport."""

        def __init__(self, *_: object, **__: object) -> None:
            _missing()

    Connection = getattr(_native, "Connection", Missing)
    Op = getattr(_native, "Op", Missing)
    Region = getattr(_native, "Region", Missing)

__all__ = ["Connection", "Host", "Op", "Region", "make_key"]

_HOSTS: WeakSet[Host] = WeakSet()


def _missing() -> NoReturn:
    raise TransportError(
        "this build of apus has no transport over UDP: it needs Linux, and the feature `real` "
        "of the native module"
    )


class Host:
    """A host of the transport in this process: sockets, engines, and the memory that peers use.

    Calls that wait for a peer, except `drain`, return an `Op`: `op.wait()` blocks, and `await op`
    suspends a task of asyncio. A host ends with its `with` block.

    A host belongs to its process. A forked child does not affect the hosts of its parent, and can
    create its own hosts.
    """

    def __init__(
        self,
        address: str | Sequence[str],
        *,
        key_file: str | os.PathLike[str] | None = None,
        insecure: bool = False,
        algorithm: str | Algorithm | None = None,
        parameters: Mapping[str, Value] | None = None,
        mode: Literal["shared", "spinning"] = "shared",
        engines: int = 1,
        behind_switch: bool = False,
        line_rate: str | None = None,
        max_mtu: int | None = None,
        max_flows: int | None = None,
        max_ops: int | None = None,
        max_message: int | None = None,
        max_queued_bytes: int | None = None,
        max_queued_messages: int | None = None,
        handshake_timeout: str | None = None,
        idle_timeout: str | None = None,
        cipher: str | None = None,
        accept: Accept | None = None,
        accept_unlisted: bool = False,
        max_sessions: int | None = None,
        max_pending: int | None = None,
        quota_sessions: int | None = None,
        quota_pending: int | None = None,
        quota_queued_bytes: int | None = None,
        quota_ops: int | None = None,
        handshake_rate: int | None = None,
        balancer: str | None = None,
        ports: int | None = None,
        source_port: int | None = None,
        accept_ports: int | None = None,
        range: int | None = None,  # noqa: A002
        ack_path: Literal["symmetric", "own"] | None = None,
        loss: Literal["ev-order", "time", "timeout"] | None = None,
        loss_delay: str | None = None,
    ) -> None:
        """Open the sockets and start the engines.

        Args:
            address: Address to serve, like "[::]:48700" or "127.0.0.1:0", or several; port 0 lets
                the system choose.
            key_file: Key file of this host and its peers, or of a key that they share
                (`apus.make_key`).
            insecure: Encrypt nothing, and let any peer connect.
            algorithm: Algorithm of every flow, by name or as an object; Swift with settings for UDP
                if not given.
            parameters: Parameters of an algorithm that is given by name, or of Swift.
            mode: "shared": calls that wait drive the engine. "spinning": the engine has a thread
                that sleeps only while another thread wants its core.
            engines: Number of engines per address, each with a thread and a socket.
            behind_switch: Whether every path leads through an `apus switch` with the same
                algorithm.
            line_rate: Rate of the host's link, like "10Gbps", for algorithms that start from it.
            max_mtu: Maximum length of an IP packet in bytes.
            max_flows: Maximum number of flows of a connection.
            max_ops: Maximum number of outstanding ops of a flow.
            max_message: Maximum length of a message from a peer in bytes.
            max_queued_bytes: Maximum number of bytes of messages of a connection that wait for
                `receive`.
            max_queued_messages: Maximum number of messages of a connection that wait for `receive`.
            handshake_timeout: Time after which an attempt to connect ends, like "5s".
            idle_timeout: Time without packets after which a connection ends, like "15s".
            cipher: The only cipher that this host uses and accepts: "aes-256-gcm" or "aegis-128x".
                If not given, the host uses "aes-256-gcm" and accepts all ciphers of the build.
            accept: Function that is called with the address, public key and name of each peer that
                connects. If it returns a text, the host refuses the peer and sends it the text;
                `None` accepts the peer. The engine waits for the call, so waits for this host raise
                `RuntimeError` in it. Key and name are `None` under a shared key alone.
            accept_unlisted: Whether peers may connect whose keys the key file does not list.
            max_sessions: Maximum number of connections of an engine, including those being opened.
            max_pending: Maximum number of connections of an engine that peers have requested and
                not confirmed yet; at most `max_sessions`.
            quota_sessions: Maximum number of connections that one key may open.
            quota_pending: Maximum number of connections that one key has requested and not
                confirmed yet.
            quota_queued_bytes: Maximum number of bytes of messages of one key that wait for
                `receive`.
            quota_ops: Maximum number of outstanding ops of all connections of one key.
            handshake_rate: Maximum number of handshakes per second from an address, and of a key.
            balancer: Path policy that spreads the packets of a flow over source ports, with its
                parameters, like "reps" or "reps freeze=10ms".
            ports: Number of source ports of an engine, a power of two from 2 to 256.
            source_port: First of the source ports in addition to that of the address.
            accept_ports: Maximum number of source ports of a peer, a power of two; 1 refuses
                further ports.
            range: Length of the range of packet numbers that a flow with several ports remembers.
            ack_path: Path of acknowledgements to a peer with several ports: "symmetric" or "own".
            loss: Rule that declares a packet lost before its timeout: "time", "ev-order" or
                "timeout".
            loss_delay: Time of the rule "time", like "5ms".

        Raises:
            ScenarioError: A setting is wrong.
            HostError: An address cannot be opened, or the system lacks something.

        """
        native = getattr(_native, "Host", None)
        if native is None:
            _missing()
        if insecure == (key_file is not None):
            raise ScenarioError(
                "a host needs either key_file=FILE (apus.make_key makes one) or insecure=True, "
                "which encrypts nothing and lets anyone connect"
            )
        profile = None
        if algorithm is not None and not isinstance(algorithm, str):
            if parameters:
                raise ScenarioError("parameters: an algorithm that is an object has its own")
            settings = dict(algorithm.settings)
            algorithm = str(settings.pop("name"))
            if (own := settings.pop("profile", None)) is not None:
                profile = str(own)
            parameters = settings
        options: HostOptions = {
            "mode": mode,
            "engines": engines,
            "algorithm": algorithm,
            "profile": profile,
            "parameters": [
                (key, str(value).lower() if isinstance(value, bool) else str(value))
                for key, value in (parameters or {}).items()
            ],
            "behind_switch": behind_switch,
            "line_rate": line_rate,
            "max_mtu": max_mtu,
            "max_flows": max_flows,
            "max_ops": max_ops,
            "max_message": max_message,
            "max_queued_bytes": max_queued_bytes,
            "max_queued_messages": max_queued_messages,
            "handshake_timeout": handshake_timeout,
            "idle_timeout": idle_timeout,
            "cipher": cipher,
            "accept": accept,
            "accept_unlisted": accept_unlisted,
            "max_sessions": max_sessions,
            "max_pending": max_pending,
            "quota_sessions": quota_sessions,
            "quota_pending": quota_pending,
            "quota_queued_bytes": quota_queued_bytes,
            "quota_ops": quota_ops,
            "handshake_rate": handshake_rate,
            "balancer": balancer,
            "ports": ports,
            "source_port": source_port,
            "accept_ports": accept_ports,
            "range": range,
            "ack_path": ack_path,
            "loss": loss,
            "loss_delay": loss_delay,
        }
        addresses = [address] if isinstance(address, str) else list(address)
        key_file = None if key_file is None else os.fspath(key_file)
        self._native: _native.Host = native(addresses, key_file, options)
        _HOSTS.add(self)

    @property
    def address(self) -> str:
        """The first address of the host."""
        return self._native.addresses[0]

    @property
    def addresses(self) -> list[str]:
        """The addresses of the host's sockets."""
        return self._native.addresses

    def connect(
        self, peer: str, *, name: str | None = None, classes: Sequence[int] = (0,)
    ) -> Op[Connection]:
        """Connect to a peer; the attempt begins when the caller waits for the op.

        Args:
            peer: Address of the peer, like "10.0.0.2:48700".
            name: Name of the peer in the key file, needed if the file lists several peers. No other
                host can answer.
            classes: Traffic class of each flow of the connection; `[0, 0]` gives two flows.

        Raises:
            ConnectError: The peer does not answer or refuses.

        """
        return self._native.connect(peer, name, list(classes))

    def accept(self) -> Op[Connection]:
        """Accept the next connection that a peer opens."""
        return self._native.accept()

    def register(
        self,
        memory: int | Buffer,
        access: str = "all",
        *,
        peers: Connection | Sequence[str] | None = None,
    ) -> Region:
        """Register memory as a region, which peers that know the region key may use.

        Args:
            memory: A number of bytes, all 0 at first, or an object with a writable buffer, such as
                a `bytearray` or an array, which then keeps its length.
            access: Allowed kinds of access: "read", "write" or "atomic", several of them as in
                "read-write" and "read-atomic", or "all".
            peers: Peers that may use the region: the peer of a connection, or the peers with these
                public keys (`Connection.peer_key`). For other peers the region key is useless.
                Every peer if not given.

        """
        return self._native.register(memory, access, peers)

    def set_keys(self, key_file: str | os.PathLike[str]) -> None:
        """Replace the keys by those of a file.

        Connections under keys that the file lacks end; connections under keys that the file has as
        "retired" continue.
        """
        self._native.set_keys(os.fspath(key_file))

    def drain(self, timeout: float = 5.0) -> bool:
        """End every connection in order, without cutting off ops.

        Args:
            timeout: Maximum time to wait in seconds.

        Returns:
            Whether every connection has ended. Close the host afterwards in either case.

        Raises:
            RuntimeError: The call is in an accept hook or an algorithm of this host.

        """
        return self._native.drain(timeout)

    def close(self) -> None:
        """End every connection and notify the peers."""
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def make_key(
    file: str | os.PathLike[str],
    *,
    name: str | None = None,
    group: str | os.PathLike[str] | None = None,
) -> str | None:
    """Create a key file that only its owner may read: a shared key, or the keys of one host.

    Args:
        file: The file to create.
        name: Name of a host. The file then has a key pair for this host, and must stay on it.
        group: Key file whose shared keys the host gets; a new shared key if not given. Only with
            `name`.

    Returns:
        The line that peers need in their key files if `name` is given, otherwise `None`.

    Raises:
        ScenarioError: `group` is given without `name`.
        HostError: `file` exists, or a file cannot be read or written.

    """
    native = getattr(_native, "make_key", None)
    if native is None:
        _missing()
    line: str | None = native(os.fspath(file), name, None if group is None else os.fspath(group))
    return line


@atexit.register
def _close_all() -> None:
    """End the engines while the interpreter can still run algorithms in Python."""
    for host in list(_HOSTS):
        host.close()
