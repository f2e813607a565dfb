"""Tags and spans: every scheme there and back, broken tags as `conlleval` reads them."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertie.errors import InputError
from bertie.text.tag_schemes import (
    SCHEMES,
    SchemeName,
    Span,
    convert,
    count_broken,
    guess_scheme,
    spans_of,
    strict_spans_of,
    tags_of,
    transitions,
)

ADAM = [Span("PER", 0, 2), Span("PER", 2, 3), Span("LOC", 3, 4), Span("ORG", 6, 9)]
WRITTEN: dict[SchemeName, str] = {
    "IOB1": "I-PER I-PER B-PER I-LOC O O I-ORG I-ORG I-ORG",
    "IOB2": "B-PER I-PER B-PER B-LOC O O B-ORG I-ORG I-ORG",
    "IOBES": "B-PER E-PER S-PER S-LOC O O B-ORG I-ORG E-ORG",
    "BIOES": "B-PER E-PER S-PER S-LOC O O B-ORG I-ORG E-ORG",
    "BILOU": "B-PER L-PER U-PER U-LOC O O B-ORG I-ORG L-ORG",
    "BMES": "B-PER E-PER S-PER S-LOC O O B-ORG M-ORG E-ORG",
}


@st.composite
def sentences(draw: st.DrawFn) -> tuple[list[Span], int]:
    """Spans that do not overlap, and the number of words; labels may hold a hyphen or be missing."""
    spans, place = [], 0
    for label in draw(st.lists(st.sampled_from(["PER", "LOC", "C-ARG1", ""]), max_size=5)):
        start = place + draw(st.integers(0, 2))
        place = start + draw(st.integers(1, 3))
        spans.append(Span(label, start, place))
    return spans, place + draw(st.integers(0, 2))


@pytest.mark.parametrize("scheme", WRITTEN)
def test_every_scheme_is_written_and_read(scheme: SchemeName) -> None:
    assert tags_of(reversed(ADAM), 9, scheme) == WRITTEN[scheme].split()
    assert spans_of(WRITTEN[scheme].split()) == ADAM


@given(sentences(), st.sampled_from(list(SCHEMES)), st.sampled_from(list(SCHEMES)))
def test_there_and_back(sentence: tuple[list[Span], int], scheme: SchemeName, other: SchemeName) -> None:
    spans, length = sentence
    tags = tags_of(spans, length, scheme)
    assert len(tags) == length
    assert spans_of(tags) == strict_spans_of(tags, scheme) == spans
    assert count_broken(tags, scheme) == 0
    assert spans_of(convert(tags, other)) == spans
    assert convert(convert(tags, other), scheme) == tags


def test_words_without_labels_are_spans_too() -> None:
    assert spans_of([*"BMESBE"]) == [Span("", 0, 3), Span("", 3, 4), Span("", 4, 6)]
    assert tags_of([Span("", 0, 3), Span("", 3, 4)], 4, "BMES") == ["B", "M", "E", "S"]


@pytest.mark.parametrize(
    ("tags", "spans", "broken"),
    [
        ("O I-PER I-PER", [("PER", 1, 3)], 1),
        ("B-PER I-LOC I-LOC", [("PER", 0, 1), ("LOC", 1, 3)], 1),
        ("I-PER O I-PER", [("PER", 0, 1), ("PER", 2, 3)], 2),
        ("B-PER B-PER I-PER", [("PER", 0, 1), ("PER", 1, 3)], 0),
        ("I-PER I-LOC I-PER", [("PER", 0, 1), ("LOC", 1, 2), ("PER", 2, 3)], 3),
    ],
)
def test_broken_iob2_is_read_as_conlleval_does_and_counted(
    tags: str, spans: list[tuple[str, int, int]], broken: int
) -> None:
    assert spans_of(tags.split()) == spans
    assert count_broken(tags.split(), "IOB2") == broken
    assert count_broken(convert(tags.split(), "IOB2"), "IOB2") == 0


@pytest.mark.parametrize(
    ("tags", "spans", "broken"),
    [
        ("B-PER I-PER O", [("PER", 0, 2)], 1),  # never ended
        ("B-PER I-PER", [("PER", 0, 2)], 1),  # at the end of the sentence too
        ("E-PER E-PER", [("PER", 0, 1), ("PER", 1, 2)], 2),
        ("S-PER I-PER E-PER", [("PER", 0, 1), ("PER", 1, 3)], 1),
        ("B-PER S-PER", [("PER", 0, 1), ("PER", 1, 2)], 1),
        ("B-PER E-LOC", [("PER", 0, 1), ("LOC", 1, 2)], 1),
    ],
)
def test_broken_iobes_is_read_too(tags: str, spans: list[tuple[str, int, int]], broken: int) -> None:
    assert spans_of(tags.split()) == spans
    assert count_broken(tags.split(), "IOBES") == broken


@pytest.mark.parametrize(
    ("tags", "scheme", "spans"),
    [
        ("B-PER I-PER O I-LOC", "IOB2", [("PER", 0, 2)]),
        ("B-PER I-LOC I-LOC", "IOB2", [("PER", 0, 1)]),
        ("B-PER I-PER O S-LOC", "IOBES", [("LOC", 3, 4)]),
        ("B-PER E-PER E-PER B-LOC", "IOBES", [("PER", 0, 2)]),
        ("B-PER U-LOC L-PER", "BILOU", [("LOC", 1, 2)]),
        ("I-PER B-PER O B-LOC", "IOB1", [("PER", 0, 1), ("PER", 1, 2)]),
    ],
)
def test_strictly_only_what_is_well_formed_counts(
    tags: str, scheme: SchemeName, spans: list[tuple[str, int, int]]
) -> None:
    assert strict_spans_of(tags.split(), scheme) == spans


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES"])
def test_a_path_of_allowed_transitions_is_a_sequence_that_is_not_broken(scheme: SchemeName) -> None:
    letters = "BI" if scheme.startswith("IOB") and scheme != "IOBES" else "BIES"
    tags = ["O", *(f"{letter}-{label}" for label in ("X", "Y") for letter in letters)]
    allowed = transitions(tags, scheme)
    for path in itertools.product(range(len(tags)), repeat=3):
        walk = allowed.start[path[0]] & allowed.end[path[-1]] & allowed.between[path[:-1], path[1:]].all()
        named = [tags[number] for number in path]
        assert walk == (count_broken(named, scheme) == 0) == (convert(named, scheme) == named)


def test_letters_of_another_scheme_are_never_allowed() -> None:
    allowed = transitions(["O", "E-X", "S-X"], "IOB2")
    assert allowed.start.tolist() == [True, False, False]
    assert not allowed.between[:, 1:].any() and np.array_equal(allowed.end, [True, True, True])


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES", "BILOU", "BMES"])
def test_the_scheme_is_guessed(scheme: SchemeName) -> None:
    found = guess_scheme([WRITTEN[scheme].split(), ["O", "O"]])
    assert found is not None
    assert (found.scheme, found.sure, found.num_spans, found.num_broken) == (scheme, 1.0, 4, 0)


@pytest.mark.parametrize(("column", "scheme"), [(2, "IOB1"), (3, "IOB2")])
def test_the_schemes_of_real_columns(column: int, scheme: SchemeName, shared: Path) -> None:
    text = (shared / "data" / "conll2003" / "dev.txt").read_text(encoding="utf-8")
    parts = [part for part in text.strip().split("\n\n") if not part.startswith("-DOCSTART-")]
    found = guess_scheme([line.split()[column] for line in part.split("\n")] for part in parts)
    assert found is not None
    assert (found.scheme, found.sure, found.num_broken) == (scheme, 1.0, 0)


def test_a_guess_tells_how_sure_it_is() -> None:
    mostly = guess_scheme([["B-PER", "O", "B-LOC", "O", "B-PER"], ["I-PER"]])
    assert mostly is not None and mostly.scheme == "IOB2"
    assert mostly.sure == 0.75 and mostly.num_broken == 1
    nothing = guess_scheme([["O", "O"]])
    assert nothing is not None and (nothing.scheme, nothing.sure) == ("IOB2", 0.0)


def test_plain_labels_are_no_spans() -> None:
    assert guess_scheme([["NN", "VBZ", "O"]]) is None
    with pytest.raises(InputError, match=r"'NN' is not a tag of spans; write \"O\", or a letter and a label"):
        spans_of(["O", "NN"])


def test_letters_of_two_schemes_at_once_are_refused() -> None:
    with pytest.raises(InputError, match="the letters B, E, U of the tags belong to no one scheme; use one of"):
        guess_scheme([["B-X", "E-X", "U-X"]])


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([Span("A", 0, 2), Span("B", 1, 3)], "the spans A of words 0 to 1 and B of words 1 to 2 overlap"),
        ([Span("A", 2, 4)], "the span A of words 2 to 3 does not lie within 3 words"),
        ([Span("", 1, 1)], "the span without label of words 1 to 0 does not lie within 3 words"),
    ],
)
def test_spans_that_tags_cannot_say(spans: list[Span], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tags_of(spans, 3, "IOB2")
