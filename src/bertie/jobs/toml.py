"""Writes options as a TOML file: plain options first, then a table per group."""

import json
from collections.abc import Mapping
from typing import Any

from bertie.errors import SpecError


def to_toml(options: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in options.items() if not isinstance(value, Mapping)}
    lines = [_line(name, value) for name, value in plain.items()]
    for name, group in options.items():
        if isinstance(group, Mapping) and group:
            lines += ["", f"[{name}]", *(_line(inner, value) for inner, value in group.items())]
    return "\n".join(lines).lstrip("\n") + "\n"


def _line(name: str, value: Any) -> str:
    values = value if isinstance(value, list) else value.values() if isinstance(value, Mapping) else [value]
    if any(isinstance(one, Mapping | list) for one in values):
        raise SpecError(f"`{name}` holds rows, which a config file cannot", hint="write them to a file and name it")
    # Strings, numbers, truth values and lists of them are written alike in TOML and JSON.
    if isinstance(value, Mapping):
        pairs = (f"{_json(key)} = {_json(one)}" for key, one in value.items())
        return f"{name} = {{ {', '.join(pairs)} }}"
    return f"{name} = {_json(value)}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
