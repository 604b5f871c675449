"""Two hosts in one process: a message and its answer, a write, and a word that both sides count.

Run it with `python python/examples/pingpong.py`. Between machines, give both hosts the same key.
"""

import asyncio

import apus


async def serve(host: apus.Host, region: apus.Region) -> None:
    """Send the key of the region, then answer messages until the peer closes."""
    peer = await host.accept()
    await peer.send(region.key.to_bytes(8, "big"))
    try:
        while True:
            await peer.send(b"pong after " + await peer.receive())
    except apus.ConnectionEndedError as end:
        print(f"server: {end}")


async def main() -> None:
    """Connect and use the region."""
    with (
        apus.Host("127.0.0.1:0", insecure=True) as server,
        apus.Host("127.0.0.1:0", insecure=True) as client,
    ):
        region = server.register(4096)
        serving = asyncio.create_task(serve(server, region))
        peer = await client.connect(server.address)
        key = int.from_bytes(await peer.receive(), "big")
        await peer.send(b"ping")
        print(await peer.receive())
        await peer.write(key, 8, b"written by the client")
        print(bytes(memoryview(region)[8:29]))
        tickets = await asyncio.gather(*(peer.fetch_add(key, 0, 1) for _ in range(10)))
        print(sorted(tickets), region.load(0))
        try:
            await peer.read(key, 4090, 100)
        except apus.OpError as error:
            print(f"{error}; may be applied: {error.may_be_applied}")
        await peer.close()
        await serving


if __name__ == "__main__":
    asyncio.run(main())
