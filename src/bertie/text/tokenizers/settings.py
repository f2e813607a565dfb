"""Reads the settings of a tokenizer's folder: tokenizer_config.json, special_tokens_map.json and added_tokens.json.

The rules of precedence are those of `transformers`.
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
    def is_generic(self) -> bool:
        """Whether `transformers` opens tokenizer.json as it is. Without a class it is neither this nor the other."""
        name = self.config.get("tokenizer_class")
        return isinstance(name, str) and name.removesuffix("Fast") in GENERIC_CLASSES

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
    """Reads a JSON file. An error names the file and the line."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise TokenizerError(f"not UTF-8 at byte {error.start}", where=str(path)) from error
    except json.JSONDecodeError as error:
        raise TokenizerError(
            f"not valid JSON ({error.msg})",
            where=f"{path}:{error.lineno}",
            hint="the file is broken or incomplete: download it again",
        ) from error


def read_settings(folder: Path) -> Settings:
    """Reads the settings of a folder; all empty where it has none of the files."""
    files: dict[str, dict[str, Any]] = {name: {} for name in (CONFIG, SPECIAL_MAP, ADDED)}
    for name in files:
        if (folder / name).is_file() and "added_tokens_decoder" not in files[CONFIG]:
            files[name] = read_json(folder / name)
            if not isinstance(files[name], dict):
                what = f"contains a {type(files[name]).__name__} where an object is expected"
                raise TokenizerError(what, where=str(folder / name))
    config, path = files[CONFIG], folder / CONFIG
    roles, stated = dict(config), list[tuple[int | None, AddedToken]]()
    if "added_tokens_decoder" in config:
        for number, token in sorted(dict(config["added_tokens_decoder"]).items(), key=lambda item: int(item[0])):
            if not isinstance(token, dict):
                raise TokenizerError(f"{token!r} is not a token with a `content`", where=str(path))
            stated.append((int(number), added_token(token, path)))
    else:
        # Older folders keep these in files of their own; a newer tokenizer_config.json makes both obsolete.
        roles.update(files[SPECIAL_MAP])
        named = [roles[key] for key in (*ROLES.values(), *OTHER_ROLES) if roles.get(key)]
        special = [added_token(token, path).content for token in named]
        for text, number in sorted(files[ADDED].items(), key=lambda item: int(item[1])):
            stated.append((int(number), AddedToken(text, normalized=text not in special, special=text in special)))
    names: dict[str, str] = {}
    for key in (*ROLES.values(), *OTHER_ROLES):
        if roles.get(key):
            stated.append((None, added_token(roles[key], path)))
            names[key] = stated[-1][1].content
    extra = roles.get("additional_special_tokens") or roles.get("extra_special_tokens") or ()
    stated += [(None, added_token(token, path)) for token in (extra.values() if isinstance(extra, dict) else extra)]
    once: dict[str, tuple[int | None, AddedToken]] = {}
    for number, token in stated:
        once.setdefault(token.content, (number, token))
    return Settings(config=config, names=names, added=tuple(once.values()), where=str(folder))


def added_token(token: Any, path: Path) -> AddedToken:
    """A token as a file states it: as an object, or, where it is special, by its text alone."""
    if not isinstance(token, dict):
        return AddedToken(str(token), special=True)
    if not isinstance(token.get("content"), str):
        raise TokenizerError(f"{token!r} is not a token with a `content`", where=str(path))
    flags = {key: bool(token[key]) for key in ("single_word", "lstrip", "rstrip", "normalized") if key in token}
    return AddedToken(token["content"], special=bool(token.get("special", True)), **flags)
