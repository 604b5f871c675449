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
    future: asyncio.Future[object] = loop.create_future()
    number = executor.start(op, future)
    try:
        return await future
    except asyncio.CancelledError:
        if number is not None:
            executor.cancel(number)
        raise
