"""Reads the settings of a tokenizer's folder: tokenizer_config.json, special_tokens_map.json and added_tokens.json.

The rules of precedence are those of `transformers`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken

from bertie.errors import TokenizerError
from bertie.json_files import read_json, shown

CONFIG = "tokenizer_config.json"
SPECIAL_MAP = "special_tokens_map.json"
ADDED = "added_tokens.json"
ROLES = {"pad": "pad_token", "unk": "unk_token", "first": "cls_token", "separator": "sep_token", "mask": "mask_token"}
OTHER_ROLES = ("bos_token", "eos_token")

# `transformers` opens these from tokenizer.json alone. Every other class builds its own pipeline from the settings.
GENERIC_CLASSES = ("PreTrainedTokenizer", "TokenizersBackend", "PythonBackend")
# `transformers` writes 1e30 for "no limit".
NO_LIMIT = 10**9


@dataclass(frozen=True)
class Settings:
    """What a folder states beside the vocabulary itself."""

    config: Mapping[str, Any] = field(default_factory=dict)  # tokenizer_config.json as it is
    names: Mapping[str, str] = field(default_factory=dict)  # "pad_token" -> "[PAD]"
    added: tuple[tuple[int | None, AddedToken], ...] = ()  # tokens to add, with the ids stated for them
    where: str = ""

    @property
    def names_a_class(self) -> bool:
        """Whether `transformers` builds the pipeline from these settings instead of from tokenizer.json."""
        name = self.config.get("tokenizer_class")
        return isinstance(name, str) and name.removesuffix("Fast") not in GENERIC_CLASSES

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


def read_settings(folder: Path) -> Settings:
    """Reads the settings of a folder; all empty where it has none of the files."""
    files: dict[str, dict[str, Any]] = {name: {} for name in (CONFIG, SPECIAL_MAP, ADDED)}
    for name in files:
        if os.path.lexists(folder / name) and "added_tokens_decoder" not in files[CONFIG]:
            content = read_json(folder / name, error=TokenizerError)
            if not isinstance(content, dict):
                what = f"contains a {type(content).__name__} where an object is expected"
                raise TokenizerError(what, where=str(folder / name))
            files[name] = content
    config, path = files[CONFIG], folder / CONFIG
    roles, stated = dict(config), list[tuple[int | None, AddedToken]]()
    if "added_tokens_decoder" in config:
        tokens = config["added_tokens_decoder"]
        if not isinstance(tokens, dict):
            raise TokenizerError(f"has the added_tokens_decoder {shown(tokens)}, not an object", where=str(path))
        for number, key in sorted((stated_id(key, path), key) for key in tokens):
            if not isinstance(tokens[key], dict):
                raise TokenizerError(f"{shown(tokens[key])} is not a token with a `content`", where=str(path))
            stated.append((number, added_token(tokens[key], path)))
    else:
        # Older folders keep these in files of their own; a newer tokenizer_config.json makes both obsolete.
        roles.update(files[SPECIAL_MAP])
        named = [roles[key] for key in (*ROLES.values(), *OTHER_ROLES) if roles.get(key)]
        special = [added_token(token, path).content for token in named]
        numbers = [(stated_id(number, folder / ADDED), text) for text, number in files[ADDED].items()]
        for number, text in sorted(numbers):
            stated.append((number, AddedToken(text, normalized=text not in special, special=text in special)))
    names: dict[str, str] = {}
    for key in (*ROLES.values(), *OTHER_ROLES):
        if roles.get(key):
            stated.append((None, added_token(roles[key], path)))
            names[key] = stated[-1][1].content
    extra = roles.get("additional_special_tokens") or roles.get("extra_special_tokens") or ()
    if not isinstance(extra, dict | list | tuple):
        raise TokenizerError(f"has the special tokens {shown(extra)}, which should be a list", where=str(path))
    stated += [(None, added_token(token, path)) for token in (extra.values() if isinstance(extra, dict) else extra)]
    once: dict[str, tuple[int | None, AddedToken]] = {}
    for entry in stated:
        once.setdefault(entry[1].content, entry)
    return Settings(config=config, names=names, added=tuple(once.values()), where=str(folder))


def added_token(token: Any, path: Path) -> AddedToken:
    """A token as a file states it: as an object, or, where it is special, by its text alone."""
    if isinstance(token, str):
        return AddedToken(token, special=True)
    if not isinstance(token, dict) or not isinstance(token.get("content"), str):
        raise TokenizerError(f"{shown(token)} is not a token with a `content`", where=str(path))
    flags = {key: bool(token[key]) for key in ("single_word", "lstrip", "rstrip", "normalized") if key in token}
    return AddedToken(token["content"], special=bool(token.get("special", True)), **flags)


def stated_id(number: Any, path: Path) -> int:
    """The id of an added token, which files write as a number or, as a key, in digits."""
    if isinstance(number, str) and number.isdecimal() and len(number) < 20:
        number = int(number)
    if type(number) is not int or not 0 <= number < 2**32:
        raise TokenizerError(f"{shown(number)} is not the id of a token", where=str(path))
    return number
