"""Opens a tokenizer's file: tokenizer.json, vocab.txt, vocab.json with merges.txt, or spiece.model.

Settings beside the file change ids in the same cases as in `transformers`.
"""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import tokenizers

from bertie.errors import TokenizerError
from bertie.json_files import LARGEST_VOCABULARY, read_json, read_regular, shown
from bertie.text.tokenizers.panics import opening
from bertie.text.tokenizers.pipeline import PipelineTokenizer
from bertie.text.tokenizers.settings import Settings
from bertie.text.tokenizers.vocabulary import (
    add_stated,
    byte_bpe_tokenizer,
    set_frame,
    special_names,
    wordpiece_tokenizer,
)

MOST_GAPS = 100_000  # ids without a piece
# In the order of preference: a complete pipeline first, then vocabularies that leave the rest to convention.
FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "spiece.model")


def from_vocabulary(path: Path, settings: Settings) -> PipelineTokenizer:
    """Opens a WordPiece vocabulary, one piece per line."""
    raw = read_regular(path, LARGEST_VOCABULARY, TokenizerError)
    try:
        # As `transformers` reads it: universal newlines, and no other line ends than those.
        pieces = [line.rstrip("\n") for line in io.StringIO(raw.decode("utf-8"), newline=None)]
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise TokenizerError("not UTF-8", where=f"{path}:{line}", hint="a vocabulary is UTF-8 text") from error
    if not pieces:
        raise TokenizerError("the vocabulary is empty", where=str(path))
    strip_accents = settings.config.get("strip_accents")
    with opening(str(path)):
        return wordpiece_tokenizer(
            pieces,
            lowercase=settings.flag("do_lower_case", True),
            strip_accents=None if strip_accents is None else bool(strip_accents),
            split_ideographs=settings.flag("tokenize_chinese_chars", True),
            settings=replace(settings, where=str(path)),
        )


def from_merges(vocabulary_path: Path, merges_path: Path, settings: Settings) -> PipelineTokenizer:
    """Opens a byte-level BPE: pieces with their ids, and the merges in their order."""
    for path, other in ((vocabulary_path, merges_path), (merges_path, vocabulary_path)):
        if not path.is_file():
            raise TokenizerError(
                f"{path.name} is missing beside {other.name}",
                where=str(path.parent),
                hint="a byte-level BPE needs both files",
            )
    vocabulary = read_json(vocabulary_path, LARGEST_VOCABULARY, TokenizerError)
    if not isinstance(vocabulary, dict):
        raise TokenizerError("does not map pieces to ids", where=str(vocabulary_path))
    check_ids(vocabulary, str(vocabulary_path))
    try:
        lines = read_regular(merges_path, LARGEST_VOCABULARY, TokenizerError).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise TokenizerError(f"not UTF-8 at byte {error.start}", where=str(merges_path)) from error
    merges: list[tuple[str, str]] = []
    for index, line in enumerate(lines, start=1):
        line = line.rstrip("\r")
        if not line or (index == 1 and line.startswith("#version")):
            continue
        parts = line.split(" ")
        if len(parts) != 2 or any(piece not in vocabulary for piece in (*parts, "".join(parts))):
            raise TokenizerError(
                f"{line!r} is not a merge of two pieces of {vocabulary_path.name}",
                where=f"{merges_path}:{index}",
                hint="the two files come from different tokenizers, or one is broken",
            )
        merges.append((parts[0], parts[1]))
    with opening(str(vocabulary_path)):
        return byte_bpe_tokenizer(vocabulary, merges, settings=replace(settings, where=str(vocabulary_path)))


def from_json(path: Path, settings: Settings) -> PipelineTokenizer:
    """Opens a whole pipeline as `tokenizers` writes it."""
    content = read_json(path, LARGEST_VOCABULARY, TokenizerError)
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        what = "contains no tokenizer: it has no `model`"
        raise TokenizerError(what, where=str(path), hint="give a tokenizer.json")
    for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        stage = content.get(name)
        steps = stage.get("normalizers", []) if isinstance(stage, dict) else []
        if not isinstance(stage, dict | None) or not isinstance(steps, list):
            raise TokenizerError(f"has the {name} {shown(stage)}, which should be an object", where=str(path))
        if not all(isinstance(step, dict) for step in steps):
            raise TokenizerError(f"has a {name} with a step that is no object", where=str(path))
    check_ids(content["model"].get("vocab"), str(path))
    # A generic class opens tokenizer.json as it is. Without a class it is neither this nor built from the settings.
    generic = isinstance(settings.config.get("tokenizer_class"), str) and not settings.names_a_class
    if not generic:
        for change in (set_cleaning, set_prefix_space, set_case_and_accents):
            change(content, settings)
    settings = replace(settings, where=str(path))
    with opening(str(path)):
        pipeline = tokenizers.Tokenizer.from_str(json.dumps(content))
        add_stated(pipeline, settings)
        if not generic and settings.names_a_class and "handle_chinese_chars" in (content.get("normalizer") or {}):
            # `transformers` frames such a text by the names in the settings, whatever the file states.
            set_frame(pipeline, special_names(pipeline.get_vocab(with_added_tokens=True), settings, required=False))
        return PipelineTokenizer(pipeline, settings, content if "type" in content["model"] else None)


def check_ids(vocabulary: Any, where: str) -> None:
    """Refuses ids that are no numbers, or so much higher than the pieces are many that tables by id fill the memory."""
    if not isinstance(vocabulary, dict):
        return
    most = 2 * len(vocabulary) + MOST_GAPS
    for piece, id in vocabulary.items():
        if type(id) is not int or not 0 <= id < most:
            what = f"gives {shown(piece)} the id {shown(id)}; it has {len(vocabulary):,} pieces"
            raise TokenizerError(what, where=where, hint="ids are whole numbers from 0 on, with few gaps")


def set_cleaning(content: dict[str, Any], settings: Settings) -> None:
    """Sets WordPiece's case, accents and ideographs: `transformers` builds that step from the settings."""
    normalizer = content.get("normalizer") or {}
    if "handle_chinese_chars" not in normalizer:
        return
    for key, option, default in (
        ("lowercase", "do_lower_case", True),
        ("handle_chinese_chars", "tokenize_chinese_chars", True),
        ("strip_accents", "strip_accents", None),
    ):
        if option in settings.config:
            normalizer[key] = settings.config[option]
        elif settings.names_a_class:
            normalizer[key] = default


def set_prefix_space(content: dict[str, Any], settings: Settings) -> None:
    """Sets whether a byte-level BPE reads a text as if there were a space before it."""
    pre_tokenizer = content.get("pre_tokenizer") or {}
    if pre_tokenizer.get("type") != "ByteLevel":
        return
    if "add_prefix_space" in settings.config or settings.names_a_class:
        pre_tokenizer["add_prefix_space"] = settings.flag("add_prefix_space", False)


def set_case_and_accents(content: dict[str, Any], settings: Settings) -> None:
    """Sets case and accents of a Unigram, which are steps before the map of characters."""
    normalizer = content.get("normalizer") or {}
    # Only a Unigram lists its pieces with scores.
    if not isinstance(content["model"].get("vocab"), list) or not settings.names_a_class:
        return
    steps = normalizer.get("normalizers", [normalizer] if normalizer else [])
    for option, wanted_value, kinds in (
        ("keep_accents", False, ("NFKD", "StripAccents")),
        ("do_lower_case", True, ("Lowercase",)),
    ):
        if settings.config.get(option) is None:
            continue
        present = any(step.get("type") in kinds for step in steps)
        wanted = bool(settings.config[option]) == wanted_value
        if present and not wanted:
            steps = [step for step in steps if step.get("type") not in kinds]
        elif wanted and not present:
            place = next((i for i, step in enumerate(steps) if step.get("type") == "Precompiled"), len(steps))
            steps = [*steps[:place], *({"type": kind} for kind in kinds), *steps[place:]]
    content["normalizer"] = {"type": "Sequence", "normalizers": steps} if steps else None
