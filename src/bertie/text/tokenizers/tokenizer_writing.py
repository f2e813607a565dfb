"""Writes a pipeline as the files of a tokenizer's folder, under the names that `transformers` opens."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers

from bertie.text.tokenizers.settings import CONFIG, SPECIAL_MAP, Settings

# Opened from tokenizer.json alone, whatever the model is.
GENERIC_CLASS = "PreTrainedTokenizerFast"


def save_pipeline(
    pipeline: tokenizers.Tokenizer, kind: str, names: Mapping[str, str], settings: Settings, folder: Path
) -> None:
    """Writes tokenizer.json, tokenizer_config.json, special_tokens_map.json, and vocab.txt for WordPiece."""
    folder.mkdir(parents=True, exist_ok=True)
    content = json.loads(pipeline.to_str())
    (folder / "tokenizer.json").write_text(pipeline.to_str(pretty=True) + "\n", encoding="utf-8")
    flags = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")
    tokens = sorted(pipeline.get_added_tokens_decoder().items())
    added = {str(id): {flag: getattr(token, flag) for flag in flags} for id, token in tokens}
    config = {"tokenizer_class": GENERIC_CLASS} | kept_settings(settings) | pipeline_settings(content)
    write_config(folder, config, names, settings, added)
    if kind == "wordpiece":
        vocabulary: dict[str, int] = content["model"]["vocab"]
        pieces = sorted(vocabulary, key=lambda piece: vocabulary[piece])
        # A line's number is the id, so a vocabulary with gaps or line ends in pieces has no such file.
        if [vocabulary[piece] for piece in pieces] == list(range(len(pieces))) and not any("\n" in p for p in pieces):
            (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces), encoding="utf-8")


def write_config(
    folder: Path, config: dict[str, Any], names: Mapping[str, str], settings: Settings, added: dict[str, Any]
) -> None:
    config = {**config, **settings.names, **names, "added_tokens_decoder": added}
    for file, content in ((CONFIG, config), (SPECIAL_MAP, {**settings.names, **names})):
        (folder / file).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def kept_settings(settings: Settings) -> dict[str, Any]:
    """The settings of the folder that was read, without paths of another machine."""
    return {key: value for key, value in settings.config.items() if not key.endswith(("_file", "name_or_path"))}


def pipeline_settings(content: dict[str, Any]) -> dict[str, Any]:
    """The settings from which `transformers` would build the same pipeline."""
    settings: dict[str, Any] = {}
    normalizer, pre_tokenizer = content.get("normalizer") or {}, content.get("pre_tokenizer") or {}
    if "handle_chinese_chars" in normalizer:
        settings["do_lower_case"] = normalizer["lowercase"]
        settings["tokenize_chinese_chars"] = normalizer["handle_chinese_chars"]
        settings["strip_accents"] = normalizer["strip_accents"]
    if pre_tokenizer.get("type") == "ByteLevel":
        settings["add_prefix_space"] = pre_tokenizer["add_prefix_space"]
    if '"type_id": 1' in json.dumps(content.get("post_processor")):
        settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    return settings
