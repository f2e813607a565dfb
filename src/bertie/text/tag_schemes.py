"""Turns tags of words into spans, and back: IOB1, IOB2, and IOBES under its several spellings.

A tag is a letter alone ("O", or "B" where all spans are of one kind) or a letter and a label ("B-PER"). Every scheme is
read by one rule, that of `conlleval`: a word joins the span before it where its letter is inside or end, its label is
the same and that span has not ended; any other letter but O starts a new one. So a tag that breaks its scheme, such as
an inside without a beginning, still gives a span; `count_broken` counts them.

Axes: n words of one sentence, K tags.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from bertie.errors import InputError

SchemeName = Literal["IOB1", "IOB2", "IOBES", "BIOES", "BILOU", "BMES"]


class Span(NamedTuple):
    label: str  # "" where tags have no label
    start: int
    end: int  # the word after the last


@dataclass(frozen=True)
class Scheme:
    """How a scheme writes the first, the further, the last and the only word of a span."""

    begin: str
    inside: str
    end: str
    single: str

    @property
    def letters(self) -> set[str]:
        return {"O", self.begin, self.inside, self.end, self.single}

    @property
    def closes(self) -> bool:
        """Whether the last word of a span is marked."""
        return self.end != self.inside


# Of IOB1 these are the letters of a span that follows another of its label; elsewhere it begins as it goes on.
SCHEMES: dict[SchemeName, Scheme] = {
    "IOB2": Scheme("B", "I", "I", "B"),
    "IOB1": Scheme("B", "I", "I", "B"),
    "IOBES": Scheme("B", "I", "E", "S"),
    "BIOES": Scheme("B", "I", "E", "S"),
    "BILOU": Scheme("B", "I", "L", "U"),
    "BMES": Scheme("B", "M", "E", "S"),
}
CANONICAL = {"O": "O", "B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S", "M": "I"}
_TAG = re.compile(f"([{''.join(CANONICAL)}])(?:-(.*))?", re.DOTALL)


class Tag(NamedTuple):
    letter: str  # O, B, I, E or S, however it was spelled
    label: str


OUTSIDE = Tag("O", "")


@lru_cache(4096)  # a corpus has few tags, and each of them a million times
def read_tag(tag: str) -> Tag:
    found = _TAG.fullmatch(tag)
    if found is None:
        raise InputError(f"{tag!r} is not a tag of spans", hint='write "O", or a letter and a label such as "B-PER"')
    letter = CANONICAL[found[1]]
    return OUTSIDE if letter == "O" else Tag(letter, found[2] or "")


def spans_of(tags: Sequence[str]) -> list[Span]:
    """The spans in order, whatever the scheme."""
    return _spans([read_tag(tag) for tag in tags])


def _spans(tags: Sequence[Tag]) -> list[Span]:
    spans: list[Span] = []
    before = OUTSIDE
    for number, tag in enumerate(tags):
        if _joins(before, tag):
            spans[-1] = spans[-1]._replace(end=number + 1)
        elif tag.letter != "O":
            spans.append(Span(tag.label, number, number + 1))
        before = tag
    return spans


def _joins(before: Tag, tag: Tag) -> bool:
    return tag.letter in "IE" and before.letter in "BI" and before.label == tag.label


def strict_spans_of(tags: Sequence[str], scheme: SchemeName) -> list[Span]:
    """Only the spans that are written as the scheme wants them, from the first word to the last."""
    read = [read_tag(tag) for tag in tags]
    return [span for span in _spans(read) if _is_well_formed(read, span, scheme)]


def _is_well_formed(tags: Sequence[Tag], span: Span, scheme: SchemeName) -> bool:
    letters = "".join(tag.letter for tag in tags[span.start : span.end])
    if SCHEMES[scheme].closes:
        return re.fullmatch("BI*E|S", letters) is not None
    if scheme == "IOB2":
        return re.fullmatch("BI*", letters) is not None
    follows = span.start > 0 and tags[span.start - 1].letter != "O" and tags[span.start - 1].label == span.label
    return re.fullmatch("BI*" if follows else "I+", letters) is not None


def tags_of(spans: Iterable[Span], length: int, scheme: SchemeName) -> list[str]:
    """The tags of a sentence of so many words."""
    letters = SCHEMES[scheme]
    tags = ["O"] * length
    before = Span("", -1, -1)
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if not 0 <= span.start < span.end <= length:
            raise InputError(f"the span {_said(span)} does not lie within {length} words")
        if span.start < before.end:
            raise InputError(f"the spans {_said(before)} and {_said(span)} overlap", hint="tags can hold one at a word")
        suffix = f"-{span.label}" if span.label else ""
        tags[span.start : span.end] = [letters.inside + suffix] * (span.end - span.start)
        follows = before.end == span.start and before.label == span.label
        if scheme != "IOB1" or follows:
            tags[span.start] = letters.begin + suffix
        if letters.closes:
            tags[span.end - 1] = (letters.end if span.end - span.start > 1 else letters.single) + suffix
        before = span
    return tags


def _said(span: Span) -> str:
    return f"{span.label or 'without label'} of words {span.start} to {span.end - 1}"


def convert(tags: Sequence[str], scheme: SchemeName) -> list[str]:
    """The same spans in another scheme; broken tags are repaired on the way."""
    return tags_of(spans_of(tags), len(tags), scheme)


# --- which tags may follow each other


class Transitions(NamedTuple):
    """What a sequence over K tags may do."""

    start: np.ndarray  # [K] bool: the tag may be the first
    between: np.ndarray  # [K, K] bool: the column's tag may follow the row's
    end: np.ndarray  # [K] bool: the tag may be the last


def transitions(tags: Sequence[str], scheme: SchemeName) -> Transitions:
    """Which of these tags may follow which, so that a decoder gives none but valid sequences."""
    read = [read_tag(tag) for tag in tags]
    return Transitions(
        start=np.array([_may_follow(None, tag, scheme) for tag in read], dtype=np.bool_),
        between=np.array([[_may_follow(one, other, scheme) for other in read] for one in read], dtype=np.bool_),
        end=np.array([_may_follow(tag, None, scheme) for tag in read], dtype=np.bool_),
    )


def count_broken(tags: Sequence[str], scheme: SchemeName) -> int:
    """Places where a tag may not stand after the one before it, or at the end."""
    read = [read_tag(tag) for tag in tags]
    neighbours = zip([None, *read], [*read, None], strict=True)
    return sum(not _may_follow(before, tag, scheme) for before, tag in neighbours) if read else 0


def _may_follow(before: Tag | None, tag: Tag | None, scheme: SchemeName) -> bool:
    """None stands for the edge of the sentence."""
    before, tag = before or OUTSIDE, tag or OUTSIDE
    if SCHEMES[scheme].closes:
        return _joins(before, tag) if before.letter in "BI" else tag.letter in "OBS"
    if scheme == "IOB2":
        return tag.letter in "OB" or (tag.letter == "I" and _joins(before, tag))
    return tag.letter in "OI" or (tag.letter == "B" and before.letter != "O" and before.label == tag.label)


# --- which scheme is it


class Guess(NamedTuple):
    scheme: SchemeName
    sure: float  # the share of spans that are well formed in this scheme; 0 without any span
    num_spans: int
    num_broken: int  # of the guessed scheme


def guess_scheme(sentences: Iterable[Sequence[str]]) -> Guess | None:
    """The scheme that the tags are written in. None where they are plain labels, such as parts of speech.

    IOBES and BIOES are the same letters: the first name is used. Without any span it is IOB2, and not sure at all.
    """
    kept = [list(tags) for tags in sentences]
    every = {tag for tags in kept for tag in tags}
    if not all(_TAG.fullmatch(tag) for tag in every):
        return None
    used = {tag[0] for tag in every}
    fitting = [name for name, scheme in SCHEMES.items() if used <= scheme.letters]
    if not fitting:
        raise InputError(
            f"the letters {', '.join(sorted(used))} of the tags belong to no one scheme",
            hint=f"use one of {', '.join(SCHEMES)}",
        )
    num_spans = sum(len(spans_of(tags)) for tags in kept)
    well_formed = {name: sum(len(strict_spans_of(tags, name)) for tags in kept) for name in fitting}
    best = max(fitting, key=lambda name: well_formed[name])
    num_broken = sum(count_broken(tags, best) for tags in kept)
    return Guess(best, well_formed[best] / num_spans if num_spans else 0.0, num_spans, num_broken)
