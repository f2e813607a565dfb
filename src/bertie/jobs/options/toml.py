"""Writes options as a TOML file: plain options first, then a table per group."""

import json
from collections.abc import Mapping
from typing import Any


def to_toml(options: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in options.items() if not isinstance(value, Mapping)}
    lines = [f"{name} = {_value(value)}" for name, value in plain.items()]
    for name, group in options.items():
        if isinstance(group, Mapping) and group:
            lines += ["", f"[{name}]", *(f"{inner} = {_value(value)}" for inner, value in group.items())]
    return "\n".join(lines).lstrip("\n") + "\n"


def _value(value: Any) -> str:
    """Strings, numbers, truth values and lists are written alike in TOML and JSON; TOML has no null."""
    if isinstance(value, Mapping):
        given = {json.dumps(str(key), ensure_ascii=False): one for key, one in value.items() if one is not None}
        return f"{{ {', '.join(f'{key} = {_value(one)}' for key, one in given.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)
