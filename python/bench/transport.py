"""Round trips of small messages between two processes: apus, and plain sockets of Python.

Run it with `python python/bench/transport.py` on an idle machine. It takes about ten seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import apus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SIZE = 64
LOOPBACK = "127.0.0.1"


def serve(kind: str) -> None:
    """Answer messages until the peer or the process ends; print the address first."""
    if kind == "apus":
        with apus.Host(f"{LOOPBACK}:0", insecure=True) as host:
            print(host.address, flush=True)
            peer = host.accept().wait()
            with contextlib.suppress(apus.ConnectionEndedError):
                while True:
                    peer.send(peer.receive().wait())
            return
    kind_of_socket = socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM
    with socket.socket(type=kind_of_socket) as own:
        own.bind((LOOPBACK, 0))
        if kind == "tcp":
            own.listen()
        print(f"{LOOPBACK}:{own.getsockname()[1]}", flush=True)
        if kind == "udp":
            while True:
                data, peer_address = own.recvfrom(SIZE)
                own.sendto(data, peer_address)
        stream, _ = own.accept()
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := stream.recv(SIZE):
            stream.sendall(data)


def report(name: str, seconds: list[float]) -> None:
    """Print median and 99th percentile."""
    cuts = statistics.quantiles(seconds, n=100)
    print(f"{name:<28} median {cuts[49] * 1e6:7.1f} us, 99 % below {cuts[98] * 1e6:7.1f} us")


def timed(call: Callable[[], object], count: int) -> list[float]:
    """Return the times of calls, after a warm-up."""
    times = []
    for number in range(count + count // 10):
        begin = time.perf_counter()
        call()
        if number >= count // 10:
            times.append(time.perf_counter() - begin)
    return times


async def timed_async(call: Callable[[], Awaitable[object]], count: int) -> list[float]:
    """Return the times of awaited calls, after a warm-up."""
    times = []
    for number in range(count + count // 10):
        begin = time.perf_counter()
        await call()
        if number >= count // 10:
            times.append(time.perf_counter() - begin)
    return times


def measure(name: str, address: str, count: int) -> None:
    """Measure one contestant."""
    message = bytes(SIZE)
    host, port = address.rsplit(":", 1)
    match name:
        case "UDP socket" | "TCP socket":
            udp = name.startswith("UDP")
            with socket.socket(type=socket.SOCK_DGRAM if udp else socket.SOCK_STREAM) as own:
                own.connect((host, int(port)))
                if not udp:
                    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

                def round_trip() -> None:
                    own.send(message)
                    own.recv(SIZE)

                report(name, timed(round_trip, count))
        case "asyncio stream (TCP)":

            async def stream() -> list[float]:
                reader, writer = await asyncio.open_connection(host, int(port))

                async def round_trip() -> None:
                    writer.write(message)
                    await reader.readexactly(SIZE)

                times = await timed_async(round_trip, count)
                writer.close()
                await writer.wait_closed()
                return times

            report(name, asyncio.run(stream()))
        case _:
            with apus.Host(f"{LOOPBACK}:0", insecure=True) as own_host:
                peer = own_host.connect(address).wait()

                def blocking() -> None:
                    peer.send(message)
                    peer.receive().wait()

                async def awaited() -> None:
                    peer.send(message)
                    await peer.receive()

                if name == "apus":
                    report(name, timed(blocking, count))
                else:
                    report(name, asyncio.run(timed_async(awaited, count)))


def main() -> None:
    """Start a server for each contestant, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="round trips of each")
    parser.add_argument("--serve", choices=["apus", "udp", "tcp"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    contestants = {
        "UDP socket": "udp",
        "TCP socket": "tcp",
        "asyncio stream (TCP)": "tcp",
        "apus": "apus",
        "apus with asyncio": "apus",
    }
    for name, kind in contestants.items():
        command = [sys.executable, __file__, "--serve", kind]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                address = server.stdout.readline() if server.stdout else ""
                measure(name, address.strip(), arguments.count)
            finally:
                server.kill()


if __name__ == "__main__":
    main()
