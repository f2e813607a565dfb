"""Splits a paragraph into sentences, by `sentencex`. Nothing is lost: the sentences put together are the paragraph."""

import importlib.metadata
import re
from collections.abc import Iterator

import sentencex

from bertie.errors import SpecError

NAME = "sentencex"
VERSION = importlib.metadata.version(NAME)

# The time that `sentencex` takes grows with the square of a paragraph's length in some languages: 6 s for 100,000
# Chinese characters. Longer paragraphs are cut first, at the end of a sentence where there is one.
LONGEST = 2000
_SENTENCE_END = re.compile(r"[。！？!?…]+[”’」』》）)\"']*\s*|\.[\"')]*\s+|\n+")
_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*")


def split_sentences(paragraph: str, language: str = "en") -> list[str]:
    """The sentences, each with the white space after it. No sentence is blank unless the whole paragraph is."""
    if len(paragraph) <= LONGEST:
        return _without_blank(sentencex.segment(language, paragraph))
    return _without_blank([part for block in _blocks(paragraph) for part in sentencex.segment(language, block)])


def check_language(language: str) -> str:
    """The code as `sentencex` wants it. It knows some 240 languages and treats others by general rules."""
    code = language.strip().replace("_", "-")
    if not _CODE.fullmatch(code):
        raise SpecError(f"{language!r} is not a language code", hint='give one such as "en", "de" or "zh"')
    return code


def _without_blank(sentences: list[str]) -> list[str]:
    if not any(not sentence or sentence.isspace() for sentence in sentences):
        return sentences
    kept: list[str] = []
    lead = ""
    for sentence in sentences:
        if sentence.strip():
            kept.append(lead + sentence)
            lead = ""
        elif kept:
            kept[-1] += sentence
        else:
            lead += sentence
    return kept if kept or not lead else [lead]


def _blocks(paragraph: str) -> Iterator[str]:
    """Consecutive parts of at most LONGEST characters."""
    start = 0
    while len(paragraph) - start > LONGEST:
        limit = start + LONGEST
        end = limit
        for match in _SENTENCE_END.finditer(paragraph, start, limit):
            if match.end() < limit:
                end = match.end()
        yield paragraph[start:end]
        start = end
    yield paragraph[start:]
