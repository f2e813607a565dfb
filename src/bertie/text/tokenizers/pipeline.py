"""The Tokenizer over a `tokenizers` pipeline: text -> normalized -> pre-tokens -> pieces -> special tokens -> Tokens.

WordPiece, BPE, Unigram, characters and words are all such pipelines, so one class is enough. Truncation happens here,
not in the pipeline, because the number of tokens that are cut must be known.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from bertie.errors import TokenizerError
from bertie.text.confusable_words import ConfusableWords
from bertie.text.reading.valid_text import are_strings, check_texts
from bertie.text.tokenizers.continuation import continuations
from bertie.text.tokenizers.fast_ids import FastIds, load_fast_ids
from bertie.text.tokenizers.panics import explained
from bertie.text.tokenizers.settings import ROLES, Settings
from bertie.text.tokenizers.tokenizer_writing import GENERIC_CLASS, save_pipeline
from bertie.text.tokenizers.tokens import FlatIds, SpecialTokens, Tokens
from bertie.text.tokenizers.truncation import longest_first, room_for_text, truncate_flat

CHUNK = 4096  # texts at a time in a bulk call, because encodings are large Python objects

CONVENTIONAL = {
    "pad_token": ("[PAD]", "<pad>"),
    "unk_token": ("[UNK]", "<unk>"),
    "cls_token": ("[CLS]", "<s>"),
    "sep_token": ("[SEP]", "</s>"),
    "mask_token": ("[MASK]", "<mask>"),
}


class PipelineTokenizer:
    """The Tokenizer over a `tokenizers.Tokenizer`, which it changes: truncation and padding are switched off. `content`
    is the pipeline as JSON, if that is at hand."""

    def __init__(
        self,
        pipeline: tokenizers.Tokenizer,
        settings: Settings | None = None,
        content: dict[str, Any] | None = None,
    ):
        self.settings = settings if settings is not None else Settings()
        pipeline.no_truncation()
        pipeline.no_padding()
        if getattr(pipeline.model, "dropout", None):
            pipeline.model.dropout = None  # random merges are for training, where they are asked for by name
        pipeline.encode_special_tokens = bool(self.settings.config.get("split_special_tokens"))
        self.pipeline = pipeline
        vocabulary = pipeline.get_vocab(with_added_tokens=True)
        content = content or json.loads(pipeline.to_str())
        self.kind = kind_of(content)
        self.confusable = ConfusableWords.within(content.get("normalizer"))  # words that are corrected
        self.size = max(vocabulary.values(), default=-1) + 1
        special: dict[str, int | None] = {}
        for role, key in ROLES.items():
            names = (self.settings.names[key],) if key in self.settings.names else CONVENTIONAL[key]
            if key == "unk_token" and key not in self.settings.names and getattr(pipeline.model, "unk_token", None):
                names = (pipeline.model.unk_token, *names)
            special[role] = next((vocabulary[name] for name in names if name in vocabulary), None)
        self.special = SpecialTokens(**special)
        self.max_length = self.settings.max_length
        self._num_special_single = pipeline.num_special_tokens_to_add(False)
        self._num_special_pair = pipeline.num_special_tokens_to_add(True)

    @cached_property
    @explained
    def digest(self) -> str:
        content = json.loads(self.pipeline.to_str())
        for key in ("version", "truncation", "padding", "decoder"):
            content.pop(key, None)
        content["split_special_tokens"] = self.pipeline.encode_special_tokens
        content["truncation_side"] = self.settings.truncation_side
        text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @explained
    def encode(self, text: str, pair: str | None = None, max_length: int | None = None) -> Tokens:
        try:
            encoding = self.pipeline.encode(text, pair)
        except TypeError:
            check_texts([text] if pair is None else [text, pair])
            raise
        tokens = self._tokens(encoding, has_pair=pair is not None, max_length=max_length)
        return self._as_written(tokens, [text, pair or ""], tokens.texts) if self.confusable.steps else tokens

    @explained
    def encode_words(
        self, words: Sequence[str], pair: Sequence[str] | None = None, max_length: int | None = None
    ) -> Tokens:
        """Tokens of text that is already split: `words` index the given list, those of a pair after the first.

        Where a piece includes the space before it (byte-level BPE), words are read as if separated by single spaces,
        so that the ids are those of running text.
        """
        first, second = self._spaced(words), None if pair is None else self._spaced(pair)
        try:
            encoding = self.pipeline.encode(first, second, is_pretokenized=True)
        except TypeError:
            check_texts(words, "word")
            check_texts(pair or (), "word of the second list,")
            raise
        tokens = self._tokens(encoding, pair is not None, max_length, num_first_words=len(words))
        tokens = self._without_spaces(tokens, len(words)) if self._needs_spaces else tokens
        return self._as_written(tokens, [*words, *(pair or ())], tokens.words) if self.confusable.steps else tokens

    def _as_written(self, tokens: Tokens, texts: Sequence[str], owners: np.ndarray) -> Tokens:
        """Widens offsets over the whole of words that were corrected; `owners` [n] is the text of each token."""
        offsets = tokens.offsets.copy()
        for number, text in enumerate(texts):
            offsets[owners == number] = self.confusable.widened(text, offsets[owners == number])
        return replace(tokens, offsets=offsets)

    def correcting(self, words: ConfusableWords, where: str | None = None) -> "PipelineTokenizer":
        """A tokenizer that reads the right word wherever the text has a wrong one. A table that it already has is kept.
        `where` the table was found is for messages."""
        words.check_beside(self.confusable, where)
        pipeline = tokenizers.Tokenizer.from_str(self.pipeline.to_str())
        pipeline.normalizer = words.before(pipeline.normalizer)
        # With this class `transformers` opens tokenizer.json itself instead of building its own pipeline.
        config = {**self.settings.config, "tokenizer_class": GENERIC_CLASS}
        return PipelineTokenizer(pipeline, replace(self.settings, config=config))

    @cached_property
    def _needs_spaces(self) -> bool:
        pre_tokenizer = json.loads(self.pipeline.to_str())["pre_tokenizer"] or {}
        stages = pre_tokenizer.get("pretokenizers", [pre_tokenizer])
        return any(stage.get("type") == "ByteLevel" and not stage.get("add_prefix_space") for stage in stages)

    def _spaced(self, words: Sequence[str]) -> list[str]:
        if isinstance(words, str):
            raise TokenizerError("encode_words was given one string", hint="give a list of words, or use encode")
        if not self._needs_spaces or not are_strings(words):
            return list(words)
        return [word if index == 0 else " " + word for index, word in enumerate(words)]

    def _without_spaces(self, tokens: Tokens, num_first_words: int) -> Tokens:
        shifted = (tokens.words > 0) & (tokens.words != num_first_words)
        return replace(tokens, offsets=np.maximum(tokens.offsets - shifted[:, None], 0))

    def _tokens(
        self, encoding: Any, has_pair: bool, max_length: int | None, num_first_words: int | None = None
    ) -> Tokens:
        special = np.asarray(encoding.special_tokens_mask, dtype=bool)
        words = np.asarray([-1 if word is None else word for word in encoding.word_ids], dtype=np.int64)
        words[special] = -1
        texts = np.asarray([-1 if text is None else text for text in encoding.sequence_ids], dtype=np.int64)
        texts[special] = -1
        in_first, in_second = np.flatnonzero(texts == 0), np.flatnonzero(texts == 1)
        if len(in_second):
            words[in_second] += int(words[in_first].max(initial=-1)) + 1 if num_first_words is None else num_first_words
        keep = np.ones(len(words), dtype=bool)
        num_truncated = 0
        if max_length is not None and (len(words) > max_length or max_length < 1):
            room = room_for_text(max_length, self._num_special_pair if has_pair else self._num_special_single)
            kept = longest_first(len(in_first), len(in_second), room) if has_pair else (min(len(in_first), room), 0)
            for places, length in zip((in_first, in_second), kept, strict=True):
                cut = places[length:] if self.settings.truncation_side == "right" else places[: len(places) - length]
                keep[cut] = False
                num_truncated += len(cut)
        offsets = np.asarray(encoding.offsets, dtype=np.int64).reshape(-1, 2)[keep]
        second = np.flatnonzero(texts[keep] == 1)
        start = (int(second[0]) if len(second) else int(keep.sum())) if has_pair else None
        return Tokens(
            ids=np.asarray(encoding.ids, dtype=np.int64)[keep],
            offsets=offsets,
            words=words[keep],
            segments=np.asarray(encoding.type_ids, dtype=np.int64)[keep],
            special=special[keep],
            num_truncated=num_truncated,
            second_start=start,
        )

    @cached_property
    def fast_ids(self) -> FastIds | None:
        """The native encoder of ids; None where it is not installed or does not do exactly what the pipeline does."""
        return load_fast_ids(self.pipeline) if self.kind == "wordpiece" else None

    @explained
    def encode_ids(self, texts: Sequence[str], max_length: int | None = None) -> FlatIds:
        before, after = self._frame
        if max_length is not None:
            room_for_text(max_length, before + after)
        ids, lengths = self._encode_all(texts, "encode_ids", add_special=True)
        return truncate_flat(ids, lengths, max_length, before, after, self.settings.truncation_side)

    @explained
    def encode_pieces(self, texts: Sequence[str]) -> FlatIds:
        ids, lengths = self._encode_all(texts, "encode_pieces", add_special=False)
        return FlatIds(ids, lengths, np.zeros(len(lengths), dtype=np.int64))

    def _encode_all(self, texts: Sequence[str], caller: str, add_special: bool) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(texts, str):
            raise TokenizerError(f"{caller} was given one string", hint="give a list of texts")
        if not are_strings(texts):
            check_texts(texts)
        fast = self.fast_ids
        try:
            return fast.encode(texts, add_special) if fast is not None else self._encode_batch(texts, add_special)
        except (TypeError, UnicodeEncodeError):
            check_texts(texts)
            raise

    def _encode_batch(self, texts: Sequence[str], add_special: bool = True) -> tuple[np.ndarray, np.ndarray]:
        ids: list[np.ndarray] = []
        for start in range(0, len(texts), CHUNK):
            batch = list(texts[start : start + CHUNK])
            encodings = self.pipeline.encode_batch_fast(batch, add_special_tokens=add_special)
            ids.extend(np.asarray(encoding.ids, dtype=np.int64) for encoding in encodings)
        lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
        return (np.concatenate(ids) if ids else np.zeros(0, dtype=np.int64)), lengths

    @cached_property
    @explained
    def continues(self) -> np.ndarray:
        vocabulary = self.pipeline.get_vocab(with_added_tokens=True)
        prefix = getattr(self.pipeline.model, "continuing_subword_prefix", None) or ""
        apart = {*self.pipeline.get_added_tokens_decoder(), *self.special.ids()}
        return continuations(vocabulary, self.size, self.kind, prefix, apart)

    @cached_property
    def _frame(self) -> tuple[int, int]:
        """The number of special tokens before and after a single text."""
        if not self._num_special_single:
            return 0, 0
        # Only a text with a token shows where it stands between them.
        for probe in (*self.pipeline.get_vocab(with_added_tokens=True), "a"):
            mask = self.pipeline.encode(probe).special_tokens_mask
            if 0 in mask:
                return mask.index(0), mask[::-1].index(0)
        return self._num_special_single, 0

    @explained
    def decode(self, ids: Sequence[int] | np.ndarray, skip_special: bool = True) -> str:
        numbers = np.asarray(ids, dtype=np.int64).reshape(-1)
        outside = numbers[(numbers < 0) | (numbers >= self.size)]
        if len(outside):
            raise no_such_id(int(outside[0]), self.size)
        text: str = self.pipeline.decode(numbers.tolist(), skip_special_tokens=skip_special)
        return text

    def id_of(self, token: str) -> int | None:
        number: int | None = self.pipeline.token_to_id(token)
        return number

    def token_of(self, id: int) -> str:
        token: str | None = self.pipeline.id_to_token(int(id)) if id >= 0 else None
        if token is None:
            raise no_such_id(int(id), self.size)
        return token

    @explained
    def save(self, folder: Path) -> None:
        ids = {key: getattr(self.special, role) for role, key in ROLES.items()}
        names = {key: self.token_of(id) for key, id in ids.items() if id is not None}
        save_pipeline(self.pipeline, self.kind, names, self.settings, Path(folder))


def no_such_id(id: int, size: int) -> TokenizerError:
    return TokenizerError(
        f"id {id} is not in the vocabulary, which has the ids 0 to {size - 1}",
        hint="these ids are from another tokenizer",
    )


def kind_of(content: dict[str, Any]) -> str:
    """The tokenizer's kind, from the content of its tokenizer.json."""
    model = content["model"]
    kind = model.get("type") or ("BPE" if "merges" in model else "WordPiece")
    if kind == "BPE":
        stages = (content.get("pre_tokenizer") or {}, content.get("decoder") or {})
        if '"ByteLevel"' in json.dumps(stages):
            return "byte-bpe"
        return "bpe" if model.get("merges") else "characters"
    return {"WordPiece": "wordpiece", "Unigram": "unigram", "WordLevel": "words"}.get(str(kind), str(kind).lower())
