"""tokenizer_config.json and its companions in, the settings that decide ids out.

A tokenizer's folder spreads them over tokenizer_config.json, special_tokens_map.json and added_tokens.json. The rules
of precedence are those of `transformers`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken

from bertie.errors import TokenizerError

CONFIG = "tokenizer_config.json"
SPECIAL_MAP = "special_tokens_map.json"
ADDED = "added_tokens.json"
ROLES = {"pad": "pad_token", "unk": "unk_token", "first": "cls_token", "separator": "sep_token", "mask": "mask_token"}
OTHER_ROLES = ("bos_token", "eos_token")

# `transformers` opens these by tokenizer.json alone. Every other class builds its pipeline anew from its settings.
GENERIC_CLASSES = ("PreTrainedTokenizer", "TokenizersBackend", "PythonBackend")
# `transformers` writes 1e30 for "no limit".
NO_LIMIT = 10**9


@dataclass(frozen=True)
class Settings:
    """What the folder says beside the vocabulary itself."""

    config: Mapping[str, Any] = field(default_factory=dict)  # tokenizer_config.json as it is
    names: Mapping[str, str] = field(default_factory=dict)  # "pad_token" -> "[PAD]"
    added: tuple[tuple[int | None, AddedToken], ...] = ()  # tokens to add, with the id that the folder states
    where: str = ""

    @property
    def names_a_class(self) -> bool:
        """Whether `transformers` would build the pipeline anew from these settings."""
        name = self.config.get("tokenizer_class")
        return isinstance(name, str) and name.removesuffix("Fast") not in GENERIC_CLASSES

    @property
    def is_generic(self) -> bool:
        return isinstance(self.config.get("tokenizer_class"), str) and not self.names_a_class

    @property
    def max_length(self) -> int | None:
        limit = self.config.get("model_max_length")
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit < NO_LIMIT:
            return None
        return int(limit)

    @property
    def truncation_side(self) -> str:
        return "left" if self.config.get("truncation_side") == "left" else "right"

    def flag(self, key: str, default: bool) -> bool:
        value = self.config.get(key)
        return default if value is None else bool(value)


def read_json(path: Path) -> Any:
    """The file's content, or a TokenizerError that names the file and the line."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise TokenizerError(f"not UTF-8 at byte {error.start}", where=str(path)) from error
    except json.JSONDecodeError as error:
        raise TokenizerError(
            f"not valid JSON ({error.msg})",
            where=f"{path}:{error.lineno}",
            hint="the file is broken or cut short: fetch it again",
        ) from error


def read_settings(folder: Path) -> Settings:
    """Settings of a folder; all empty when it has none of the files."""
    config = _read_mapping(folder / CONFIG)
    stated: list[tuple[int | None, AddedToken]] = []
    roles = dict(config)
    if "added_tokens_decoder" in config:
        for number, token in sorted(dict(config["added_tokens_decoder"]).items(), key=lambda item: int(item[0])):
            stated.append((int(number), _added_token(token, folder / CONFIG)))
    else:
        # Older folders keep these in files of their own; a newer tokenizer_config.json makes both obsolete.
        roles.update(_read_mapping(folder / SPECIAL_MAP))
        special = {_content(roles[key]) for key in (*ROLES.values(), *OTHER_ROLES) if roles.get(key)}
        for text, number in sorted(_read_mapping(folder / ADDED).items(), key=lambda item: int(item[1])):
            stated.append((int(number), AddedToken(text, normalized=text not in special, special=text in special)))
    names: dict[str, str] = {}
    for key in (*ROLES.values(), *OTHER_ROLES):
        if roles.get(key):
            names[key] = _content(roles[key])
            stated.append((None, _special_token(roles[key], folder / CONFIG)))
    extra = roles.get("additional_special_tokens") or roles.get("extra_special_tokens") or ()
    for token in extra.values() if isinstance(extra, dict) else extra:
        stated.append((None, _special_token(token, folder / CONFIG)))
    return Settings(config=config, names=names, added=tuple(_once(stated)), where=str(folder))


def _once(stated: list[tuple[int | None, AddedToken]]) -> list[tuple[int | None, AddedToken]]:
    seen: dict[str, tuple[int | None, AddedToken]] = {}
    for number, token in stated:
        seen.setdefault(token.content, (number, token))
    return list(seen.values())


def _read_mapping(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    content = read_json(path)
    if not isinstance(content, dict):
        raise TokenizerError(f"holds a {type(content).__name__} where an object is expected", where=str(path))
    return content


def _content(token: Any) -> str:
    return str(token["content"]) if isinstance(token, dict) else str(token)


def _special_token(token: Any, path: Path) -> AddedToken:
    return _added_token(token, path) if isinstance(token, dict) else AddedToken(str(token), special=True)


def _added_token(token: Any, path: Path) -> AddedToken:
    if not isinstance(token, dict) or not isinstance(token.get("content"), str):
        raise TokenizerError(f"{token!r} is not a token with a `content`", where=str(path))
    flags = {key: bool(token[key]) for key in ("single_word", "lstrip", "rstrip", "normalized") if key in token}
    return AddedToken(token["content"], special=bool(token.get("special", True)), **flags)
