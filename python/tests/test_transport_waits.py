"""Waits of the transport: limits, threads that must not wait, cancelled tasks, and forks."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Literal

import pytest
from test_own_algorithm import Constant
from test_transport import ADDRESS, Pair, connected

import apus
from apus import _loops

MODES: list[Literal["shared", "spinning"]] = ["shared", "spinning"]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Return two hosts without keys, and a connection."""
    with apus.Host(ADDRESS, insecure=True) as server, apus.Host(ADDRESS, insecure=True) as client:
        yield connected(server, client)


@pytest.mark.parametrize("timeout", [0, 0.0, -1, -1e300, float("-inf")])
def test_a_wait_without_time_looks_once(pair: Pair, timeout: float) -> None:
    with pytest.raises(TimeoutError, match="it goes on"):
        pair.there.receive().wait(timeout)


def test_a_limit_that_is_no_number_is_an_error(pair: Pair) -> None:
    op = pair.there.receive()
    with pytest.raises(ValueError, match="timeout=nan: must be a number of seconds"):
        op.wait(float("nan"))
    with pytest.raises(ValueError, match="timeout=nan"):
        pair.server.drain(float("nan"))
    pair.here.send(b"still there").wait(60)
    assert op.wait(float("inf")) == b"still there"
    pair.here.send(b"again").wait(1e300)


def test_numbers_that_no_memory_has_are_errors(pair: Pair) -> None:
    region = pair.server.register(8)
    with pytest.raises(ValueError, match="at most 281474976710656 bytes"):
        pair.here.read(region.key, 0, 1 << 60)
    with pytest.raises(MemoryError, match="281474976710656 bytes"):
        pair.here.read(region.key, 0, 1 << 48)
    with pytest.raises(MemoryError, match="1125899906842624 bytes"):
        pair.server.register(1 << 50)
    for number in (-1, 2**70):
        with pytest.raises(ValueError, match=f"memory={number}: a number of bytes must be from 0"):
            pair.server.register(number)
    with pytest.raises(TypeError, match="bytes-like object"):
        pair.server.register("text")  # type: ignore[arg-type]
    assert pair.here.read(region.key, 0, 8).wait(60) == bytes(8)
    assert pair.here.read(region.key, 0, 0).wait(60) == b""
    assert len(pair.server.register(0)) == 0


def refusals(calls: list[Callable[[], object]]) -> list[str]:
    """Return the messages of calls that are refused."""
    messages = []
    for call in calls:
        try:
            call()
        except RuntimeError as error:
            messages.append(str(error))
    return messages


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("engines", [1, 2])
def test_an_accept_hook_cannot_wait_for_its_host(
    mode: Literal["shared", "spinning"], engines: int
) -> None:
    hosts: list[apus.Host] = []
    regions: list[apus.Region] = []
    messages: list[list[str]] = []

    def accept(_address: str, _key: str | None, _name: str | None) -> None:
        (server,) = hosts
        calls = [
            server.accept().wait,
            server.connect(server.address).wait,
            lambda: server.drain(60),
        ]
        messages.append(refusals(calls))
        regions[0].close()

    with (
        apus.Host(ADDRESS, insecure=True, accept=accept, mode=mode, engines=engines) as server,
        apus.Host(ADDRESS, insecure=True) as client,
    ):
        hosts.append(server)
        regions.append(server.register(8))
        pair = connected(server, client)
        expected = "this thread runs the engine of this host (accept hook or algorithm)"
        assert [message.startswith(expected) for message in messages[0]] == [True] * 3
        with pytest.raises(apus.OpError, match="no region with this key"):
            pair.here.read(regions[0].key, 0, 8).wait(60)
        # In other threads the same calls wait.
        regions[0].close()
        pair.here.send(b"after").wait(60)
        assert pair.there.receive().wait(60) == b"after"


class Waiting(Constant):
    """Waits for its connection at each acknowledgement."""

    calls: ClassVar[list[Callable[[], object]]] = []
    messages: ClassVar[list[str]] = []

    def on_ack(self, event: apus.AckEvent) -> None:
        Waiting.messages += refusals(Waiting.calls)


@pytest.mark.parametrize("mode", MODES)
def test_an_algorithm_cannot_wait_for_its_connection(mode: Literal["shared", "spinning"]) -> None:
    Waiting.calls, Waiting.messages = [], []
    own = Waiting(min_rto="10ms")
    with (
        apus.Host(ADDRESS, insecure=True) as server,
        apus.Host(ADDRESS, insecure=True, algorithm=own, mode=mode) as client,
    ):
        pair = connected(server, client)
        op = pair.here.receive()
        Waiting.calls = [op.wait, pair.here.close().wait, pair.here.source_ports]
        pair.here.send(b"acknowledged").wait(60)
        Waiting.calls = []
        assert len(Waiting.messages) >= 3
        assert all("it cannot wait for it" in message for message in Waiting.messages)
        # The op is available again.
        pair.there.send(b"later").wait(60)
        assert op.wait(60) == b"later"


def test_a_cancelled_op_ends_every_task_that_waits_for_it(pair: Pair) -> None:
    async def main() -> None:
        for op in (pair.there.receive(), pair.server.accept()):
            waiting = [asyncio.create_task(wait(op)) for _ in range(3)]
            await asyncio.sleep(0)
            op.cancel()
            ended = await asyncio.wait_for(asyncio.gather(*waiting), 60)
            assert ended == ["cancelled"] * 3

    async def wait(op: apus.Op[object]) -> object:
        try:
            return await op
        except asyncio.CancelledError:
            return "cancelled"

    asyncio.run(main())


def test_every_task_that_waits_for_an_op_gets_its_end(pair: Pair) -> None:
    async def main() -> None:
        op = pair.there.receive()
        waiting = [asyncio.create_task(wait(op)) for _ in range(3)]
        await asyncio.sleep(0)
        # If another waiting thread gives up, it passes its wake-up on to these tasks.
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(op.wait, 0)
        await pair.here.send(b"for all")
        assert await asyncio.wait_for(asyncio.gather(*waiting), 60) == [b"for all"] * 3

    async def wait(op: apus.Op[bytes]) -> bytes:
        return await op

    asyncio.run(main())


def test_a_task_that_is_cancelled_when_its_op_has_ended_loses_nothing(pair: Pair) -> None:
    async def main() -> None:
        async def take(op: apus.Op[object]) -> object:
            return await op

        message = asyncio.create_task(take(pair.there.receive()))
        connection = asyncio.create_task(take(pair.server.accept()))
        await asyncio.sleep(0)
        # The event loop does not run meanwhile: the tasks are cancelled before they can continue.
        pair.here.send(b"kept").wait(60)
        second = other.connect(pair.server.address).wait(60)
        _loops._EXECUTORS[asyncio.get_running_loop()].run()  # noqa: SLF001 - as the loop does
        message.cancel()
        connection.cancel()
        ended = await asyncio.gather(message, connection, return_exceptions=True)
        assert [type(one) for one in ended] == [asyncio.CancelledError] * 2
        assert await asyncio.wait_for(take(pair.there.receive()), 60) == b"kept"
        accepted = await asyncio.wait_for(take(pair.server.accept()), 60)
        assert isinstance(accepted, apus.Connection)
        await second.send(b"to the second")
        assert await accepted.receive() == b"to the second"

    with apus.Host(ADDRESS, insecure=True) as other:
        asyncio.run(main())


def until_error(call: Callable[[], object]) -> None:
    """Repeat a call until it raises an error."""
    while True:
        call()


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_wait_for_a_drain(pair: Pair) -> None:
    # The peer's application does not receive the message, so the connection stays open.
    pair.here.send(b"not taken").wait(60)
    region = pair.server.register(8)

    def interrupt() -> None:
        """Send the signal as soon as the host drains, which refuses ops of its peer."""
        with pytest.raises(apus.OpError, match="the peer is shutting down"):
            until_error(lambda: pair.here.read(region.key, 0, 8).wait(60))
        os.kill(os.getpid(), signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        interrupted = pool.submit(interrupt)
        with pytest.raises(KeyboardInterrupt):
            pair.server.drain(300)
        interrupted.result(60)
    assert not pair.server.drain(0)
    with pytest.raises(apus.ConnectionEndedError):
        until_error(lambda: pair.there.receive().wait(60))
    assert pair.server.drain(60)
    pair.server.close()
    assert not pair.server.drain(300)


FORK = """
import os, sys
import apus

with apus.Host("127.0.0.1:0", insecure=True) as server, \\
        apus.Host("127.0.0.1:0", insecure=True) as client:
    accepted, region = server.accept(), server.register(8)
    here = client.connect(server.address).wait(60)
    there = accepted.wait(60)
    child = os.fork()
    if child == 0:
        calls = [
            lambda: here.send(b"from the child"),
            lambda: there.receive(),
            lambda: here.close(),
            lambda: server.accept(),
            lambda: client.connect(server.address),
            lambda: server.register(8),
            lambda: server.set_keys("no file"),
            lambda: region.set_peers(there),
            lambda: region.read(0, 8),
            lambda: region.write(0, b"12345678"),
            lambda: region.load(0),
            lambda: region.store(0, 1),
            lambda: region.compare_and_swap(0, 0, 1),
            lambda: region.fetch_add(0, 1),
        ]
        for number, call in enumerate(calls):
            try:
                call()
                print("not refused:", number)
            except RuntimeError as error:
                assert "make a host in this process" in str(error), error
        region.close()
        del there, region, calls, call
        # Ends as a program does, and drops all handles.
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    here.send(b"from the parent").wait(60)
    assert there.receive().wait(60) == b"from the parent"
    here.write(region.key, 0, b"12345678").wait(60)
    assert region.read(0, 8) == b"12345678"
    print(here.ended, there.ended)
"""


def test_the_end_of_a_forked_process_leaves_the_connections_of_its_parent() -> None:
    done = subprocess.run(
        # From Python 3.12 upwards, a fork in a process with threads causes a warning.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("None None\n", "")


def test_an_algorithm_of_a_host_keeps_its_profile() -> None:
    with apus.Host(ADDRESS, insecure=True, algorithm=apus.Dctcp(profile="gcn")) as host:
        assert host.address
    with pytest.raises(apus.ScenarioError, match="profile `none`"):
        apus.Host(ADDRESS, insecure=True, algorithm=apus.Dctcp(profile="none"))
