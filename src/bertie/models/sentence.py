"""What `sentence-transformers` keeps beside a model: modules.json, the pooling, the normalisation, the length limit."""

import json
from dataclasses import dataclass
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
KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True)
class SentenceSettings:
    pooling: Pooling
    max_length: int | None = None


def read_sentence_settings(folder: Path) -> SentenceSettings | None:
    """None where the folder is a plain model."""
    if not (folder / "modules.json").exists():
        return None
    modules = json.loads((folder / "modules.json").read_text("utf-8"))
    kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in modules]
    if unknown := [kind for kind in kinds if kind not in KNOWN_MODULES]:
        raise FolderError(
            f"modules.json asks for {unknown[0]}, which is not supported here",
            where=str(folder),
            hint=f"supported are {', '.join(KNOWN_MODULES)}",
        )
    paths = dict(zip(kinds, (str(module["path"]) for module in modules), strict=True))
    pooling = Pooling(tokens="mean")
    if "Pooling" in paths:
        pooling = _pooling(folder / paths["Pooling"] / "config.json")
    settings = read_json(path) if (path := folder / "sentence_bert_config.json").exists() else {}
    return SentenceSettings(pooling.replace(normalize="Normalize" in kinds), settings.get("max_seq_length"))


def write_sentence_settings(folder: Path, settings: SentenceSettings, width: int) -> str | None:
    """Returns a sentence where `sentence-transformers` cannot express the pooling; then nothing is written."""
    pooling = settings.pooling
    if pooling.needs_layers:
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
        "sentence_bert_config.json": {"max_seq_length": settings.max_length, "do_lower_case": False},
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    if pooling.normalize:
        (folder / "2_Normalize").mkdir(exist_ok=True)
    return None


def _pooling(path: Path) -> Pooling:
    config = read_json(path)
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
