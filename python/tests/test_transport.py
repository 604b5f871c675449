"""The transport over UDP on loopback: ops by blocking calls and by asyncio, memory, and errors."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

import apus
from apus import _native

ADDRESS = "127.0.0.1:0"


class Pair(NamedTuple):
    """Two hosts and a connection between them."""

    server: apus.Host
    client: apus.Host
    there: apus.Connection
    here: apus.Connection


def connected(server: apus.Host, client: apus.Host) -> Pair:
    """Return a connection, as both sides see it."""
    with ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(server.accept().wait)
        here = client.connect(server.address).wait(60)
        return Pair(server, client, accepted.result(60), here)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Return two hosts with one key, and a connection."""
    key = tmp_path / "shared.key"
    apus.make_key(key)
    with apus.Host(ADDRESS, key_file=key) as server, apus.Host(ADDRESS, key_file=key) as client:
        yield connected(server, client)


def test_writes_reads_and_words_reach_the_region_of_the_peer(pair: Pair) -> None:
    region = pair.server.register(100_000)
    assert len(region) == 100_000
    data = bytes(range(256)) * 300
    assert pair.here.write(region.key, 64, data).wait(60) is None
    assert region.read(64, len(data)) == data
    assert pair.here.read(region.key, 64, len(data)).wait(60) == data
    region.store(0, 40)
    assert pair.here.fetch_add(region.key, 0, 2).wait(60) == 40
    assert pair.here.compare_and_swap(region.key, 0, 42, 2**64 - 1).wait(60) == 42
    assert region.load(0) == 2**64 - 1
    assert region.fetch_add(0, 1) == 2**64 - 1
    assert region.compare_and_swap(0, 0, 7) == 0
    with pytest.raises(IndexError, match="the region has 100000 bytes"):
        region.read(99_999, 2)
    with pytest.raises(ValueError, match="must be a multiple of 8"):
        region.load(4)


def identified(folder: Path, *names: str) -> dict[str, Path]:
    """Make key files of hosts that know each other."""
    files = {name: folder / f"{name}.key" for name in names}
    lines = {}
    for name, file in files.items():
        group = None if name == names[0] else files[names[0]]
        lines[name] = apus.make_key(file, name=name, group=group)
    for name, file in files.items():
        others = [line or "" for other, line in lines.items() if other != name]
        file.write_text(file.read_text() + "\n".join(others) + "\n")
    return files


def test_hosts_with_keys_of_their_own_know_each_other(tmp_path: Path) -> None:
    files = identified(tmp_path, "server", "one", "two")
    asked = []

    def accept(address: str, key: str | None, name: str | None) -> str | None:
        asked.append((address.rpartition(":")[0], len(key or ""), name))
        return "two is not welcome" if name == "two" else None

    with (
        apus.Host(ADDRESS, key_file=files["server"], accept=accept) as server,
        apus.Host(ADDRESS, key_file=files["one"]) as one,
        apus.Host(ADDRESS, key_file=files["two"]) as two,
    ):
        with ThreadPoolExecutor(1) as pool:
            accepted = pool.submit(server.accept().wait)
            here = one.connect(server.address, name="server").wait(60)
            there = accepted.result(60)
        assert (here.peer_name, there.peer_name) == ("server", "one")
        assert there.peer_key is not None
        with pytest.raises(apus.ConnectError, match="refused the connection: two is not welcome"):
            two.connect(server.address, name="server").wait(60)
        with pytest.raises(apus.ConnectError, match="name the one to connect to"):
            two.connect(server.address).wait(60)
        # A peer repeats its request if the answer is late, and the function is then called again.
        assert list(dict.fromkeys(asked)) == [("127.0.0.1", 64, "one"), ("127.0.0.1", 64, "two")]
        region = server.register(64, "read-atomic", peers=[there.peer_key])
        assert here.read(region.key, 0, 8).wait(60) == bytes(8)
        assert here.fetch_add(region.key, 0, 2).wait(60) == 0
        with pytest.raises(apus.OpError, match="does not allow this kind of access"):
            here.write(region.key, 0, b"x").wait(60)
        region.set_peers([])
        with pytest.raises(apus.OpError, match="no region with this key"):
            here.read(region.key, 0, 8).wait(60)
        region.set_peers(there)
        assert here.read(region.key, 0, 8).wait(60) == (2).to_bytes(8, "little")
        with pytest.raises(ValueError, match="is not a public key"):
            region.set_peers(["00"])
        with pytest.raises(ValueError, match="a connection of another host"):
            region.set_peers(here)
        with pytest.raises(ValueError, match="a connection of another host"):
            server.register(8, peers=here)
        with pytest.raises(ValueError, match="registered for all"):
            server.register(8).set_peers([])
        server.set_keys(files["server"])
        assert here.ended is None


def test_a_group_without_a_name_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "host.key"
    with pytest.raises(ValueError, match="group: has no effect without `name`"):
        apus.make_key(file, group=tmp_path / "group.key")
    assert not file.exists()


def test_limits_of_sessions_are_checked_against_each_other() -> None:
    for sessions, pending, of_key, pending_of_key, message in (
        (0, None, None, None, "max_sessions"),
        (8, 9, None, None, "max_sessions"),
        (8, None, 9, None, "max_sessions"),
        (None, 8, None, 9, "max_pending"),
    ):
        with pytest.raises(ValueError, match=message):
            apus.Host(
                "127.0.0.1:0",
                insecure=True,
                max_sessions=sessions,
                max_pending=pending,
                quota_sessions=of_key,
                quota_pending=pending_of_key,
            )
    # Fewer sessions also mean fewer that are not confirmed.
    apus.Host("127.0.0.1:0", insecure=True, max_sessions=8, quota_pending=8).close()


def test_an_accept_hook_that_raises_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "shared.key"
    assert apus.make_key(key) is None
    raised = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: raised.append(str(args.exc_value)))

    def accept(_address: str, key: str | None, name: str | None) -> str | None:
        assert key is None
        assert name is None
        raise RuntimeError("broken")

    with (
        apus.Host(ADDRESS, key_file=key, accept=accept) as server,
        apus.Host(ADDRESS, key_file=key) as client,
        pytest.raises(apus.ConnectError, match="its accept hook failed"),
    ):
        client.connect(server.address).wait(60)
    assert raised == ["broken"]


def test_messages_go_both_ways_and_outstanding_ops_overlap(pair: Pair) -> None:
    sent = [pair.here.send(bytes([number])) for number in range(100)]
    assert sorted(pair.there.receive().wait(60)[0] for _ in sent) == list(range(100))
    assert all(op.wait(60) is None and op.done for op in sent)
    pair.there.send(memoryview(b"answer")[1:]).wait(60)
    assert pair.here.receive().wait(60) == b"nswer"


def test_a_view_of_a_region_is_its_memory(pair: Pair) -> None:
    region = pair.server.register(4096)
    view = memoryview(region)
    assert (view.nbytes, view.readonly) == (4096, False)
    view[:5] = b"hello"
    assert pair.here.read(region.key, 0, 5).wait(60) == b"hello"
    pair.here.write(region.key, 0, b"HE").wait(60)
    assert bytes(view[:5]) == b"HEllo"
    # The view keeps the memory of a region to which no other reference exists.
    region.close()
    del region
    gc.collect()
    view[:5] = b"after"
    assert bytes(view[:5]) == b"after"


def test_the_memory_of_an_object_is_a_region_without_a_copy(pair: Pair) -> None:
    own = bytearray(4096)
    region = pair.server.register(own)
    pair.here.write(region.key, 8, b"word").wait(60)
    assert own[8:12] == b"word"
    with pytest.raises(BufferError):
        own.append(0)
    region.close()
    del region
    own.append(0)
    with pytest.raises(BufferError, match="must be writable"):
        pair.server.register(b"constant")


def test_a_read_fills_a_buffer_and_gives_it_back(pair: Pair) -> None:
    region = pair.server.register(1 << 20)
    region.write(0, b"x" * (1 << 20))
    target = bytearray(1 << 20)
    pair.here.read_into(region.key, 0, target).wait(60)
    assert target == b"x" * (1 << 20)
    target.clear()
    payload = bytearray(b"y" * 5000)
    op = pair.here.write(region.key, 0, payload)
    op.wait(60)
    payload.clear()
    assert region.read(4999, 2) == b"yx"


def test_an_op_that_fails_says_whether_it_may_be_applied(pair: Pair) -> None:
    with pytest.raises(apus.OpError, match="no region with this key") as error:
        pair.here.write(1, 0, b"x").wait(60)
    assert not error.value.may_be_applied
    region = pair.server.register(8)
    with pytest.raises(apus.OpError, match="reaches beyond the region's end") as error:
        pair.here.read(region.key, 4, 8).wait(60)
    assert not error.value.may_be_applied
    pair.here.write(region.key, 0, b"12345678").wait(60)
    pair.server.close()
    with pytest.raises((apus.OpError, apus.ConnectionEndedError)) as ended:
        pair.here.write(region.key, 0, b"late", timeout=30).wait(60)
    if isinstance(ended.value, apus.OpError):
        # The op was sent, but the peer did not report its result.
        assert ended.value.may_be_applied
    with pytest.raises(apus.ConnectionEndedError, match="peer"):
        pair.here.receive().wait(60)
    with pytest.raises(apus.ConnectionEndedError, match="peer"):
        pair.here.send(b"later")
    assert pair.here.ended is not None


def test_a_deadline_and_a_cancellation_leave_the_op_unknown(pair: Pair) -> None:
    # The peer's application receives no messages, and its host has room for no more than these.
    sent = [pair.here.send(bytes(1 << 20)) for _ in range(16)]
    for op in sent:
        op.wait(60)
    with pytest.raises(apus.OpError, match="its deadline passed") as error:
        pair.here.send(bytes(1 << 20), timeout=0.05).wait(60)
    assert error.value.may_be_applied
    cancelled = pair.here.send(bytes(1 << 20))
    with pytest.raises(TimeoutError, match="it goes on"):
        cancelled.wait(0.01)
    cancelled.cancel()
    with pytest.raises(apus.OpError, match="it was cancelled"):
        cancelled.wait(60)


def test_tasks_of_asyncio_wait_without_blocking_each_other(pair: Pair) -> None:
    region = pair.server.register(1 << 16)

    async def echo() -> None:
        while True:
            await pair.there.send(await pair.there.receive())

    async def call(number: int) -> bytes:
        await pair.here.send(number.to_bytes(2, "big"))
        return await pair.here.receive()

    async def main() -> None:
        server = asyncio.create_task(echo())
        answers = await asyncio.wait_for(asyncio.gather(*map(call, range(200))), 60)
        assert sorted(int.from_bytes(one, "big") for one in answers) == list(range(200))
        await asyncio.gather(*(pair.here.fetch_add(region.key, 0, 1) for _ in range(100)))
        assert region.load(0) == 100
        server.cancel()
        with pytest.raises(asyncio.CancelledError):
            await server
        # The message for which no task waited any more is still available.
        await pair.here.send(b"kept")
        assert await pair.there.receive() == b"kept"
        with pytest.raises(apus.OpError, match="no region"):
            await pair.here.read(1, 0, 1)

    # A different event loop gets a different executor.
    asyncio.run(main())
    asyncio.run(main_again(pair))


async def main_again(pair: Pair) -> None:
    """Connect, accept and close in tasks."""
    with apus.Host(ADDRESS, insecure=True) as server, apus.Host(ADDRESS, insecure=True) as client:
        there, here = await asyncio.gather(server.accept(), client.connect(server.address))
        assert (there.peer, here.peer) == (client.address, server.address)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(here.receive(), 0.01)
        await here.close()
        with pytest.raises(apus.ConnectionEndedError, match="the connection was closed here"):
            await here.receive()
    await pair.here.send(b"")


def test_a_blocking_call_lets_other_threads_run(pair: Pair) -> None:
    begun = threading.Event()

    def wait() -> bytes:
        op = pair.there.receive()
        begun.set()
        return op.wait(60)

    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(wait)
        assert begun.wait(60)
        pair.here.send(b"from another thread").wait(60)
        assert received.result(60) == b"from another thread"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either key_file=FILE"),
        ({"insecure": True, "key_file": "k"}, "either key_file=FILE"),
        ({"key_file": "/nowhere/k"}, "this key file cannot be read"),
        ({"insecure": True, "algorithm": "swif"}, "did you mean `swift`"),
        ({"insecure": True, "parameters": {"beta": 2}}, "`beta`"),
        ({"insecure": True, "engines": 0}, "engines"),
        ({"insecure": True, "mode": "inline"}, "mode must be"),
        ({"insecure": True, "cipher": "aegis-128x"}, "no effect without keys"),
        ({"insecure": True, "idle_timeout": "5"}, "idle_timeout"),
    ],
)
def test_wrong_settings_of_a_host_are_errors(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(apus.ScenarioError, match=message):
        apus.Host(ADDRESS, **arguments)  # type: ignore[arg-type]


def test_a_host_that_cannot_start_or_connect_says_why(pair: Pair) -> None:
    with pytest.raises(apus.ScenarioError, match="is no address"):
        apus.Host("nowhere", insecure=True)
    with pytest.raises(apus.HostError, match=r"cannot open a UDP socket at 192\.0\.2\.1:1"):
        apus.Host("192.0.2.1:1", insecure=True)
    with (
        apus.Host(ADDRESS, insecure=True, handshake_timeout="100ms") as other,
        pytest.raises(apus.ConnectError, match="no session: one side is insecure"),
    ):
        other.connect(pair.server.address).wait(60)


class Slow(apus.OwnAlgorithm):
    """A constant window of two packets, which fails when it is told to."""

    acks = 0
    fails = False

    def on_ack(self, event: apus.AckEvent) -> None:
        Slow.acks += event.acked_packets
        if Slow.fails:
            raise LookupError("told to")

    def on_loss(self, event: apus.LossEvent) -> None:
        pass

    def on_timeout(self, event: apus.TimeoutEvent) -> None:
        pass

    def allowance(self) -> float | apus.Allowance:
        return 2.0


def test_an_algorithm_in_python_paces_real_packets_and_may_fail() -> None:
    Slow.acks, Slow.fails = 0, False
    with (
        apus.Host(ADDRESS, insecure=True) as server,
        apus.Host(ADDRESS, insecure=True, algorithm=Slow(min_rto="10ms")) as client,
    ):
        pair = connected(server, client)
        region = server.register(1 << 20)
        pair.here.write(region.key, 0, bytes(1 << 20)).wait(60)
        # A packet has at most 9000 bytes.
        assert Slow.acks >= (1 << 20) // 9000
        Slow.fails = True
        # The first acknowledgement ends the engine.
        with pytest.raises((apus.OpError, apus.ConnectionEndedError)) as error:
            pair.here.write(region.key, 0, bytes(1 << 16)).wait(60)
        assert isinstance(error.value.__cause__, LookupError)


def test_handles_are_collected_and_a_connection_ends_with_the_last() -> None:
    with apus.Host(ADDRESS, insecure=True) as server, apus.Host(ADDRESS, insecure=True) as client:
        pair = connected(server, client)
        there = pair.there
        del pair
        gc.collect()
        with pytest.raises(apus.ConnectionEndedError, match="the peer closed the connection"):
            there.receive().wait(60)
    host = apus.Host(ADDRESS, insecure=True)
    alive = weakref.ref(host)
    del host
    gc.collect()
    assert alive() is None


def test_a_module_without_the_transport_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(_native, "Host")
    with pytest.raises(apus.TransportError, match="no transport over UDP: it needs Linux"):
        apus.Host(ADDRESS, insecure=True)
