"""What `sentence-transformers` keeps beside a model: modules.json, the pooling, the normalisation, the length limit."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertie.errors import FolderError
from bertie.models.folder import read_json
from bertie.nn.pooling import Pooling, TokenPooling

POOLING_MODES: dict[str, TokenPooling] = {"cls": "first", "mean": "mean", "max": "max"}
MODE_FLAGS: dict[TokenPooling, str] = {
    "first": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
}
LIMITS, PROMPTS = "sentence_bert_config.json", "config_sentence_transformers.json"
KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True)
class SentenceSettings:
    pooling: Pooling
    max_length: int | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None

    @property
    def prompt(self) -> str:
        """What is put before every text."""
        return self.prompts[self.default_prompt] if self.default_prompt else ""


def read_sentence_settings(folder: Path) -> SentenceSettings | None:
    """None where the folder is a plain model."""
    if not (folder / "modules.json").exists():
        return None
    paths = _modules(folder / "modules.json")
    if unknown := [kind for kind in paths if kind not in KNOWN_MODULES]:
        raise FolderError(
            f"modules.json asks for {unknown[0]}, which is not supported here",
            where=str(folder),
            hint=f"supported are {', '.join(KNOWN_MODULES)}",
        )
    pooling = Pooling(tokens="mean")
    if "Pooling" in paths:
        pooling = _pooling(folder / paths["Pooling"] / "config.json")
    prompts, default = _prompts(folder / PROMPTS)
    return SentenceSettings(pooling.replace(normalize="Normalize" in paths), _limit(folder / LIMITS), prompts, default)


def write_sentence_settings(folder: Path, settings: SentenceSettings, width: int) -> str | None:
    """Returns a sentence where `sentence-transformers` cannot express the pooling; then nothing is written."""
    pooling = settings.pooling
    if pooling.needs_layers:
        (folder / "modules.json").unlink(missing_ok=True)
        return f"sentence-transformers cannot pool {pooling.layers} layers: its files are not written"
    names = [("", "Transformer"), ("1_Pooling", "Pooling")] + [("2_Normalize", "Normalize")] * pooling.normalize
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (path, kind) in enumerate(names)
    ]
    flags = {flag: tokens == pooling.tokens for tokens, flag in MODE_FLAGS.items()}
    files: dict[str, Any] = {
        "modules.json": modules,
        "1_Pooling/config.json": {"word_embedding_dimension": width, **flags},
        LIMITS: {"max_seq_length": settings.max_length, "do_lower_case": False},
    }
    if settings.prompts:
        files[PROMPTS] = {"prompts": dict(settings.prompts), "default_prompt_name": settings.default_prompt}
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    if pooling.normalize:
        (folder / "2_Normalize").mkdir(exist_ok=True)
    return None


def _modules(path: Path) -> dict[str, str]:
    """Kind of each module -> where its files are."""
    try:
        modules = json.loads(path.read_text("utf-8"))
        if not isinstance(modules, list):
            raise TypeError("it is no list")
        return {str(module["type"]).rsplit(".", 1)[-1]: str(module["path"]) for module in modules}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FolderError(f"is not a list of modules ({error})", where=str(path)) from None


def _limit(path: Path) -> int | None:
    settings = read_json(path) if path.exists() else {}
    limit = settings.get("max_seq_length")
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise FolderError(f"max_seq_length is {limit!r}, which is no length", where=str(path))
    if settings.get("do_lower_case"):
        raise FolderError("do_lower_case is set, which is not supported here", where=str(path))
    return limit


def _prompts(path: Path) -> tuple[dict[str, str], str | None]:
    settings = read_json(path) if path.exists() else {}
    prompts, default = settings.get("prompts") or {}, settings.get("default_prompt_name")
    if not isinstance(prompts, dict) or (default is not None and default not in prompts):
        raise FolderError(f"the default prompt {default!r} is not among the prompts", where=str(path))
    return {str(name): str(text) for name, text in prompts.items()}, default


def _pooling(path: Path) -> Pooling:
    config = read_json(path)
    if config.get("include_prompt") is False:
        raise FolderError("include_prompt is off, which is not supported here", where=str(path))
    if mode := config.get("pooling_mode"):
        chosen = [mode] if isinstance(mode, str) else list(mode)
    else:
        chosen = [name.removeprefix("pooling_mode_").split("_tok")[0] for name, on in config.items() if on is True]
        chosen = [name for name in chosen if name in POOLING_MODES or name.startswith(("mean", "weighted", "last"))]
    if len(chosen) != 1 or chosen[0] not in POOLING_MODES:
        raise FolderError(
            f"asks for the pooling {' + '.join(chosen) or 'none'}",
            where=str(path),
            hint=f"supported is one of {', '.join(POOLING_MODES)}",
        )
    return Pooling(tokens=POOLING_MODES[chosen[0]])
