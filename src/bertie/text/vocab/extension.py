"""Adds words to a WordPiece or BPE tokenizer as pieces of its own vocabulary.

Old ids stay. Texts keep their ids unless a word of theirs starts with a new word (or, in BPE, with the first pieces
of one): such a word now starts with the new piece. In byte-level BPE the new piece has its space before it, so a word
that is first in a text keeps its old pieces.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import tokenizers

from bertie.errors import TokenizerError
from bertie.text.tokenizers.pipeline import PipelineTokenizer
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.tokenizers.tokenizer_writing import GENERIC_CLASS
from bertie.text.vocab.counting import Counting

REASONS = {
    "unigram": "its pieces carry probabilities, and a new one would change how every text is split",
    "characters": "its pieces are single characters",
    "words": "its list of words can be trained again with more of them",
}


@dataclass(frozen=True)
class Extension:
    tokenizer: PipelineTokenizer
    origins: Mapping[int, tuple[int, ...]]  # id of each new piece -> the old ids that stood there
    words: tuple[str, ...]  # added, as pieces
    skipped: Mapping[str, str]  # word -> why not


def extend_tokenizer(tokenizer: Tokenizer | None, words: Iterable[str]) -> Extension:
    """Words as people write them, without spaces around them."""
    base = _extensible(tokenizer)
    content = json.loads(base.pipeline.to_str())
    found, skipped = _pieces(base, words)
    if base.kind == "wordpiece":
        chains = {word: [(word, ids)] for word, ids in found.items()}
        merges: list[tuple[str, str]] = []
    else:
        chains, merges = _merge_chains(base, found)
    vocabulary: dict[str, int] = content["model"]["vocab"]
    # The library numbers added tokens by counting, unless the vocabulary has their id.
    vocabulary |= {token["content"]: token["id"] for token in content["added_tokens"]}
    origins: dict[int, tuple[int, ...]] = {}
    for chain in chains.values():
        for piece, ids in chain:
            if piece not in vocabulary:
                vocabulary[piece] = base.size + len(origins)
                origins[vocabulary[piece]] = tuple(ids)
    if merges:
        content["model"]["merges"] += [list(merge) for merge in merges]
    # Under this class `transformers` opens tokenizer.json itself instead of building the pipeline again.
    settings = replace(base.settings, config={**base.settings.config, "tokenizer_class": GENERIC_CLASS})
    extended = PipelineTokenizer(tokenizers.Tokenizer.from_str(json.dumps(content)), settings)
    used = [word for word in found if [token.value for token in extended.pipeline.model.tokenize(word)] == [word]]
    skipped |= {word: "other merges come first" for word in found if word not in used}
    return Extension(extended, origins, tuple(used), skipped)


def word_counting(tokenizer: Tokenizer | None, ram: int, workers: int = 1) -> Counting:
    """How the words for `find_words` are to be counted."""
    base = _extensible(tokenizer)
    return Counting(base.pipeline, keeps_spaces=base.kind != "wordpiece", ram=ram, workers=workers)


def find_words(
    tokenizer: Tokenizer | None, counts: Mapping[str, int], num_words: int, min_pieces: int = 3
) -> list[str]:
    """Frequent words of many pieces: those whose splitting costs most, count x (pieces - 1)."""
    base = _extensible(tokenizer)
    plain: Counter[str] = Counter()
    for word, count in counts.items():
        plain[_as_written(base, word)] += count
    cost: dict[str, int] = {}
    for word, count in plain.items():
        if count < 2 or not any(letter.isalpha() for letter in word):
            continue
        seen = split_words(base.pipeline, _with_space(base, word))
        num_pieces = len(base.pipeline.model.tokenize(seen[0])) if len(seen) == 1 else 0
        if num_pieces >= min_pieces:
            cost[word] = count * (num_pieces - 1)
    return sorted(cost, key=lambda word: (-cost[word], word))[:num_words]


def _as_written(base: PipelineTokenizer, word: str) -> str:
    """A word as the model sees it, as people write it; counted at the start of a text and elsewhere it is one word."""
    if base.kind == "wordpiece":
        return word
    written: str = base.pipeline.decoder.decode([word]) if base.pipeline.decoder is not None else word
    return written.strip()


def _with_space(base: PipelineTokenizer, word: str) -> str:
    """A byte-level piece with its space can stand nowhere but at the start of a word; without, a merge would apply
    anywhere in a word."""
    return f" {word}" if base.kind == "byte-bpe" else word


def _extensible(tokenizer: Tokenizer | None) -> PipelineTokenizer:
    if tokenizer is None:
        raise TokenizerError("the folder has no tokenizer", hint="give a folder with tokenizer.json or vocab.txt")
    if tokenizer.kind in REASONS:
        raise TokenizerError(
            f"a {tokenizer.kind} tokenizer cannot be extended: {REASONS[tokenizer.kind]}",
            hint="extend a WordPiece or BPE tokenizer, or train a new vocabulary",
        )
    assert isinstance(tokenizer, PipelineTokenizer)
    if tokenizer.kind != "wordpiece" and tokenizer.pipeline.model.continuing_subword_prefix:
        raise TokenizerError("a BPE tokenizer with a mark for continuations cannot be extended")
    return tokenizer


def _pieces(base: PipelineTokenizer, words: Iterable[str]) -> tuple[dict[str, list[int]], dict[str, str]]:
    """Each word as the model sees it, with its old ids; and the words that cannot be one piece, with the reason."""
    found: dict[str, list[int]] = {}
    skipped: dict[str, str] = {}
    longest = getattr(base.pipeline.model, "max_input_chars_per_word", None)
    for word in words:
        seen = split_words(base.pipeline, _with_space(base, word))
        if len(seen) != 1:
            skipped[word] = f"the tokenizer sees {len(seen)} words in it: {' '.join(seen)}"
        elif longest is not None and len(seen[0]) > longest:
            skipped[word] = f"it is longer than {longest} characters"
        elif len(tokens := base.pipeline.model.tokenize(seen[0])) == 1 and tokens[0].value == seen[0]:
            skipped[word] = "it is one piece already"
        else:
            found[seen[0]] = [token.id for token in tokens]
    return found, skipped


def split_words(pipeline: tokenizers.Tokenizer, text: str) -> list[str]:
    normal = pipeline.normalizer.normalize_str(text) if pipeline.normalizer is not None else text
    cut: list[tuple[str, Any]] = (
        pipeline.pre_tokenizer.pre_tokenize_str(normal) if pipeline.pre_tokenizer else [(normal, 0)]
    )
    return [word for word, _ in cut]


def _merge_chains(
    base: PipelineTokenizer, found: Mapping[str, Sequence[int]]
) -> tuple[dict[str, list[tuple[str, list[int]]]], list[tuple[str, str]]]:
    """New merges, of lower rank than all old ones, that join each word's pieces from left to right.

    From the left, so that what they make always begins a word. For each word the pieces made, with their old ids.
    """
    ranks: dict[tuple[str, str], int] = {}
    origins: dict[str, list[int]] = {}
    chains: dict[str, list[tuple[str, list[int]]]] = {}
    for word, ids in found.items():
        pieces = [base.token_of(id) for id in ids]
        for piece, id in zip(pieces, ids, strict=True):
            origins[piece] = [id]
        pieces = _apply(pieces, ranks)
        chain = []
        while len(pieces) > 1:
            left, right, *rest = pieces
            ranks[left, right] = len(ranks)
            joined = left + right
            origins[joined] = [*origins[left], *origins[right]]
            chain.append((joined, origins[joined]))
            pieces = [joined, *rest]
        chains[word] = chain
    return chains, list(ranks)


def _apply(pieces: list[str], ranks: Mapping[tuple[str, str], int]) -> list[str]:
    """BPE with the new merges alone."""
    while True:
        ranked = [(ranks[pair], at) for at, pair in enumerate(pairwise(pieces)) if pair in ranks]
        if not ranked:
            return pieces
        _, at = min(ranked)
        pieces = [*pieces[:at], pieces[at] + pieces[at + 1], *pieces[at + 2 :]]
