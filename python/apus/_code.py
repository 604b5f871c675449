"""Hashes of code: results of an algorithm in Python belong to one version of its class."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING

from apus.parameters import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NOT_CODE = frozenset({"_abc_impl", "_registered"})
"""Attributes that are no part of the behaviour of a class."""


def hash_of(cls: type, base: type) -> str:
    """Return a hash of the code of a class and of its bases, except those of `base`.

    The hash covers functions, classes and constants that the methods name, if they belong to the
    module of the class. It does not cover names of other modules. It is computed from compiled
    code: comments do not change it, but another version of Python may.
    """
    seen: set[int] = set()
    digest = hashlib.sha256()
    for part in cls.__mro__:
        # A mixin may stand behind `base`. The standard library belongs to the version of Python.
        if part in base.__mro__ or part.__module__.partition(".")[0] in sys.stdlib_module_names:
            continue
        for text in _class(part, seen):
            digest.update(text.encode() + b"\n")
    return digest.hexdigest()[:16]


def _class(cls: type, seen: set[int]) -> Iterator[str]:
    seen.add(id(cls))
    # Of a class that was sent by value the path is lost.
    yield f"class {cls.__name__}"
    for name, value in sorted(vars(cls).items(), key=lambda item: item[0]):
        special = name.startswith("__") and name.endswith("__")
        if name not in _NOT_CODE and not (special and not callable(value)):
            yield name
            yield from _value(value, cls.__module__, seen)


def _value(value: object, module: str, seen: set[int]) -> Iterator[str]:
    """Describe a value, which code in this module uses."""
    value = _unwrapped(value)
    if isinstance(value, property):
        for part in (value.fget, value.fset):
            yield from _value(part, module, seen)
    elif isinstance(value, Parameter):
        yield repr([value.kind, value.default, value.must, value.words])
    elif isinstance(value, FunctionType | type) and value.__module__ == module:
        if id(value) not in seen:
            yield from _class(value, seen) if isinstance(value, type) else _function(value, seen)
    elif isinstance(value, tuple | frozenset):
        yield from _constants(value, module, seen)
    elif value is None or isinstance(value, bool | int | float | complex | str | bytes):
        yield repr(value)
    elif isinstance(value, ModuleType):
        yield value.__name__
    else:
        # What can change while an algorithm runs is state. In a process that `multiprocessing` has
        # started, the module of the script has another name.
        where = type(value).__module__.replace("__mp_main__", "__main__")
        yield f"{where}.{type(value).__qualname__}"


def _unwrapped(value: object) -> object:
    """Return the function behind a decorator of Python; other values are returned unchanged."""
    if isinstance(value, staticmethod | classmethod):
        return _unwrapped(value.__func__)
    if isinstance(value, functools.cached_property):
        return value.func
    if isinstance(value, FunctionType | type):
        # The code of a wrapper in Python counts too; what it wraps is in its closure.
        return value
    # `functools.cache` and `lru_cache`.
    wrapped: object = getattr(value, "__dict__", {}).get("__wrapped__", value)
    return wrapped


def _function(function: FunctionType, seen: set[int]) -> Iterator[str]:
    seen.add(id(function))
    module = function.__module__
    yield from _code(function.__code__, module, seen)
    for value in (function.__defaults__ or (), *(function.__kwdefaults__ or {}).items()):
        yield from _value(value, module, seen)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield name
            yield from _value(function.__globals__[name], module, seen)
    for cell in function.__closure__ or ():
        # A cell is empty until its variable has a value.
        with contextlib.suppress(ValueError):
            yield from _value(cell.cell_contents, module, seen)


def _code(code: CodeType, module: str, seen: set[int]) -> Iterator[str]:
    yield code.co_code.hex()
    yield code.co_exceptiontable.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags))
    yield from _constants(code.co_consts, module, seen)


def _constants(values: Iterable[object], module: str, seen: set[int]) -> Iterator[str]:
    # The order of a set depends on the process.
    for value in sorted(values, key=repr) if isinstance(values, frozenset) else values:
        if isinstance(value, CodeType):
            yield from _code(value, module, seen)
        else:
            yield from _value(value, module, seen)


def _names(code: CodeType) -> set[str]:
    """Return the names that code, and the code within, looks up."""
    within = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*map(_names, within))
