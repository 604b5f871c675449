"""Ops in event loops of asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from apus import _native

if TYPE_CHECKING:
    from apus._native import Executor, Op

_EXECUTORS: WeakKeyDictionary[asyncio.AbstractEventLoop, Executor] = WeakKeyDictionary()


async def end_of(op: Op[Any]) -> object:
    """Wait for an op in the running loop."""
    loop = asyncio.get_running_loop()
    executor = _EXECUTORS.get(loop)
    if executor is None:
        executor = _EXECUTORS[loop] = _native.Executor()
        loop.add_reader(executor.fileno(), executor.run)
    while True:
        ready: asyncio.Future[None] = loop.create_future()
        # A task takes the end of the op when it runs: one that is cancelled before loses nothing.
        if (ended := executor.poll(op, ready)) is not None:
            return ended[0]
        try:
            await ready
        except asyncio.CancelledError:
            executor.forget(ready)
            op.cancel()
            raise
