"""Values of Python as values of a scenario file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from apus.errors import ScenarioError

if TYPE_CHECKING:
    from apus._types import Settings, Value


def to_toml(value: Value, where: str) -> str:
    """Return a value as TOML on one line; `where` names it in errors."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(float(value))
        case Mapping():
            parts = (
                f"{json.dumps(key)} = {to_toml(inner, f'{where}.{key}')}"
                for key, inner in value.items()
            )
            return f"{{ {', '.join(parts)} }}"
        case Sequence():
            parts = (to_toml(inner, f"{where}[{i}]") for i, inner in enumerate(value))
            return f"[{', '.join(parts)}]"
        case type():
            raise ScenarioError(f"{where}: {value.__name__} is a class; write {value.__name__}()")
        case _:
            raise ScenarioError(
                f"{where}: {value!r} is no value of a setting; it must be a text, a finite number, "
                "True or False, a list or a dict of these"
            )


def assignments(settings: Settings | None) -> list[str]:
    """Return settings as the command's option `--set` takes them."""
    # A text is not quoted: like on the command line it may be any value.
    return [
        f"{key}={value if isinstance(value, str) else to_toml(value, f'set[{key!r}]')}"
        for key, value in (settings or {}).items()
    ]
