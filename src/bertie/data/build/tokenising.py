"""The last stage: turns one part of the input, without what occurred before, into a shard and counts.

Axes: T tokens, S sentences, D documents of a block.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from bertie.data.build.build_options import Setup
from bertie.data.build.memory_use import release_all
from bertie.data.build.parts import Work
from bertie.data.build.repeats import REASONS, WHOLE, DropLog
from bertie.data.corpus import shard_name
from bertie.data.shards import Block, id_type, write_shard
from bertie.errors import TokenizerError
from bertie.text.reading.cleaning import Cleaner
from bertie.text.segmenters import IDEOGRAPHS, Segmenter, load_segmenter
from bertie.text.sentences import split_sentences
from bertie.text.tokenizers.tokenizer import Tokenizer, load_tokenizer
from bertie.text.tokenizers.word_tokens import WordTokenizer

# Enough that calls cost nothing, little enough that a worker's memory stays small.
BLOCK_CHARACTERS = 100_000

_IDEOGRAPHS = re.compile(f"[{IDEOGRAPHS}]+")
_KANA = re.compile("[\u3040-\u30ff]")


def tokenise(setup: Setup, numbers: Mapping[str, int], work: Work) -> dict[str, Any]:
    """Writes the part's shard, unless nothing is left of it, and tells its entry and the counts. `numbers` are those
    under which the parts were compared; empty when they were not."""
    tools = load_tools(setup)
    writer = _Documents(tools, setup)
    drops = DropLog(setup.drops).of_part(numbers[work.key]) if numbers else None
    path = setup.folder / shard_name(setup.layer, work.key)
    entry = write_shard(path, writer.blocks(work, drops), tools.tokenizer.size)
    if not entry.num_documents:
        path.unlink()
    release_all()
    counts = {**writer.counts, **{f"cleaning: {key}": number for key, number in writer.cleaner.counts.items()}}
    return {
        "shard": entry.model_dump() if entry.num_documents else None,
        "counts": counts,
        "dropped": {reason: number for reason, number in writer.dropped.items() if number},
        "bytes": counts.get("bytes read", 0),
    }


class Tools:
    def __init__(self, tokenizer: Tokenizer, segmenter: Segmenter | None, language: str | None):
        self.tokenizer, self.language = tokenizer, language
        self.encode = WordTokenizer(tokenizer, segmenter)
        # A piece that carries the space before it wants that space; the splitter leaves it at the sentence before.
        self.moves_spaces = tokenizer.kind == "byte-bpe"

    def sentences(self, paragraph: str) -> list[str]:
        found = split_sentences(paragraph, self.language or script_language(paragraph))
        return with_leading_spaces(found) if self.moves_spaces else found


@lru_cache(maxsize=1)
def load_tools(setup: Setup) -> Tools:
    """Once in each worker."""
    tokenizer = load_tokenizer(setup.tokenizer_path)
    if tokenizer is None:
        raise TokenizerError("there is no tokenizer in this folder", where=str(setup.tokenizer_path))
    language = None if setup.options.language == "auto" else setup.options.language
    segmenter = load_segmenter(setup.options.segmenter, setup.options.dictionary)
    tools = Tools(tokenizer, segmenter, language)
    release_all()
    return tools


def script_language(paragraph: str) -> str:
    """ "zh" or "ja" where a tenth of the characters are ideographs or kana, else "en"."""
    if paragraph.isascii():
        return "en"
    num_ideographs = sum(map(len, _IDEOGRAPHS.findall(paragraph)))
    num_kana = len(_KANA.findall(paragraph))
    if 10 * (num_ideographs + num_kana) < len(paragraph):
        return "en"
    return "ja" if 10 * num_kana >= num_ideographs else "zh"


def with_leading_spaces(sentences: list[str]) -> list[str]:
    moved, space = [], ""
    for sentence in sentences:
        body = sentence.rstrip()
        moved.append(space + body)
        space = sentence[len(body) :]
    return moved


class _Documents:
    """The documents of one part, block by block, with the counts of what was kept and dropped."""

    def __init__(self, tools: Tools, setup: Setup):
        self.tools, self.options = tools, setup.options
        self.cleaner = Cleaner(setup.options.cleaning)
        self.counts: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()

    def blocks(self, work: Work, drops: np.ndarray | None) -> Iterator[Block]:
        sentences: list[str] = []
        counts: list[int] = []
        names: list[str] = []
        num_waiting = 0
        for name, paragraphs in self._kept(work, drops):
            before = len(sentences)
            if self.options.sentences:
                for paragraph in paragraphs:
                    sentences.extend(self.tools.sentences(paragraph))
            else:
                sentences.extend(paragraphs)
            counts.append(len(sentences) - before)
            names.append(name)
            num_waiting += sum(map(len, paragraphs))
            if num_waiting >= BLOCK_CHARACTERS:
                yield from self._block(sentences, counts, names)
                sentences, counts, names, num_waiting = [], [], [], 0
        yield from self._block(sentences, counts, names)

    def _kept(self, work: Work, drops: np.ndarray | None) -> Iterator[tuple[str, list[str]]]:
        """Names and paragraphs of the documents that stay."""
        whole, places = ({}, set()) if drops is None else places_of(drops)
        for number, document in enumerate(work.documents()):
            self.counts["documents read"] += 1
            self.counts["bytes read"] += len(document.text.encode("utf-8", "surrogatepass"))
            text = self.cleaner(document.text)
            if not text:
                self.dropped["empty or short documents"] += 1
                continue
            if number in whole:
                self.dropped[REASONS[whole[number]]] += 1
                continue
            lines = text.split("\n")
            paragraphs = [line for place, line in enumerate(lines) if line and (number, place) not in places]
            if not paragraphs:
                self.dropped["documents of duplicate paragraphs alone"] += 1
                continue
            self.counts["paragraphs"] += len(paragraphs)
            yield document.name, paragraphs
        if drops is not None:
            for reason in (2, 3):
                self.dropped[REASONS[reason]] += int((drops["reason"] == reason).sum())

    def _block(self, sentences: list[str], counts: list[int], names: list[str]) -> Iterator[Block]:
        tools = self.tools
        tokens = tools.encode(sentences)
        sentence_ends = np.concatenate([[0], np.cumsum(tokens.lengths)])  # [S + 1]
        document_at = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)  # [D + 1] sentences before
        document_ends = sentence_ends[document_at]  # [D + 1]
        owner = np.repeat(np.arange(len(counts)), counts)  # [S]
        has_tokens = np.diff(sentence_ends) > 0  # [S]; white space or odd characters alone give none
        starts = (sentence_ends[:-1] - document_ends[:-1][owner])[has_tokens]
        lengths = np.diff(document_ends)
        stays = lengths > 0
        self.dropped["documents without tokens"] += int((~stays).sum())
        unk = tools.tokenizer.special.unk
        self.counts["unknown tokens"] += int((tokens.ids == unk).sum()) if unk is not None else 0
        if tokens.num_joined:
            self.counts["word boundaries inside a token"] += tokens.num_joined
        if not stays.any():
            return
        yield Block(
            ids=tokens.ids.astype(id_type(tools.tokenizer.size)),
            words=tokens.begins,
            lengths=lengths[stays],
            sentences=starts,
            num_sentences=np.bincount(owner[has_tokens], minlength=len(counts))[stays],
            names=[name for name, stay in zip(names, stays, strict=True) if stay],
        )


def places_of(drops: np.ndarray) -> tuple[dict[int, int], set[tuple[int, int]]]:
    """Documents that go, with the reason, and single paragraphs that go."""
    whole = drops[drops["paragraph"] == WHOLE]
    single = drops[drops["paragraph"] != WHOLE]
    documents = dict(zip(whole["document"].tolist(), whole["reason"].tolist(), strict=True))
    return documents, set(zip(single["document"].tolist(), single["paragraph"].tolist(), strict=True))
