"""Windows over passages: every token in one, answers at their places, the best spans by brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tasks.learning import tokenizer

from bertie.errors import InputError
from bertie.tasks.passage_windows import LEAST, best_spans, windows_of

PASSAGE = "  Ann lives in Paris, and “Bob” went to\tRome.  The cat sat in the film of food. " * 4
QUESTION = "where is the cat?"


@given(length=st.integers(30, 200), shared=st.integers(1, 100))
def test_windows_hold_every_token_with_the_question_before_it(length: int, shared: int) -> None:
    windows = windows_of(tokenizer(), QUESTION, PASSAGE, length, shared)
    whole = tokenizer().encode(QUESTION, PASSAGE)
    inside = whole.texts == 1
    covered: set[int] = set()
    for row in windows.rows:
        tokens, segments = row.fields["tokens"], row.fields["segments"]
        assert len(tokens) == len(segments) <= length and row.size >= 1
        np.testing.assert_array_equal(tokens[: row.before], whole.ids[: row.before])
        held = slice(row.first, row.first + row.size)
        np.testing.assert_array_equal(tokens[row.before : row.before + row.size], whole.ids[inside][held])
        assert tokens[-1] == whole.ids[-1] and segments[-1] == 1 and segments[0] == 0
        covered |= set(range(row.first, row.first + row.size))
    assert covered == set(range(int(inside.sum()))) == set(range(len(windows.offsets)))
    for one, other in zip(windows.rows, windows.rows[1:], strict=False):
        room = length - one.before - 1
        assert one.first + one.size - other.first == min(shared, room // 2)
        assert len(one.fields["tokens"]) == length, "all but the last are full"
    assert windows.rows[-1].first + windows.rows[-1].size == len(windows.offsets)


def test_a_passage_that_fits_is_one_window() -> None:
    windows = windows_of(tokenizer(), "who?", "the cat sat", 64, 16)
    assert len(windows.rows) == 1
    np.testing.assert_array_equal(windows.rows[0].fields["tokens"], tokenizer().encode("who?", "the cat sat").ids)


def test_questions_that_leave_no_room_are_refused() -> None:
    room = 64 - len(tokenizer().encode(QUESTION)) - 1
    assert windows_of(tokenizer(), QUESTION, PASSAGE, 64 - room + LEAST, 4).rows
    message = f"leaves {LEAST - 1} of .* tokens for the passage, and {LEAST} are needed; give a larger `max_length`"
    with pytest.raises(InputError, match=message):
        windows_of(tokenizer(), QUESTION, PASSAGE, 64 - room + LEAST - 1, 4)
    with pytest.raises(InputError, match="the question leaves 0 of 32"):
        windows_of(tokenizer(), QUESTION * 20, PASSAGE, 32, 4)
    with pytest.raises(InputError, match="the passage gives no token"):
        windows_of(tokenizer(), QUESTION, "\u200b\x07", 64, 4)


@pytest.mark.parametrize("text", ["Paris", "Ann lives", "Bob” went to\tRome", " in Paris, ", "ari", "food. "])
def test_an_answer_is_found_in_each_window_that_holds_all_of_it(text: str) -> None:
    """Also with white space around it, or inside a token."""
    windows = windows_of(tokenizer(), QUESTION, PASSAGE, 40, 10)
    start = PASSAGE.index(text)
    found = windows.tokens_of(start, start + len(text))
    assert found is not None
    begin, stop = windows.characters_of(*found)
    assert text.strip() in PASSAGE[begin:stop] and len(PASSAGE[begin:stop]) <= len(text.strip()) + 2
    held = 0
    for row in windows.rows:
        place = row.place_of(*found)
        assert (place is not None) == (row.first <= found[0] and found[1] < row.first + row.size)
        if place is not None:
            held += 1
            ids = row.fields["tokens"][place[0] : place[1] + 1]
            np.testing.assert_array_equal(ids, tokenizer().encode_pieces([PASSAGE[begin:stop]]).ids)
    assert held >= 1


def test_characters_without_a_token_are_no_answer() -> None:
    windows = windows_of(tokenizer(), QUESTION, "the cat\u200b \x07 sat", 64, 4)
    assert windows.tokens_of(9, 10) is None
    assert windows.tokens_of(0, 3) == (0, 0)


@pytest.mark.parametrize("longest", [1, 4, 30])
def test_best_spans_are_those_of_brute_force(longest: int) -> None:
    rng = np.random.default_rng(longest)
    windows = windows_of(tokenizer(), QUESTION, PASSAGE, 40, 10)
    outputs = [rng.normal(size=(len(row.fields["tokens"]), 2)).astype(np.float32) for row in windows.rows]
    scores: dict[tuple[int, int], float] = {}
    for logits, row in zip(outputs, windows.rows, strict=True):
        for begin in range(row.size):
            for end in range(begin, min(begin + longest, row.size)):
                score = float(logits[row.before + begin, 0]) + float(logits[row.before + end, 1])
                span = row.first + begin, row.first + end
                scores[span] = max(score, scores.get(span, -np.inf))
    expected = sorted(((score, *span) for span, score in scores.items()), key=lambda one: -one[0])[:20]
    found = best_spans(outputs, windows, longest)
    assert [(span.begin, span.end) for span in found] == [one[1:] for one in expected]
    np.testing.assert_allclose([span.score for span in found], [one[0] for one in expected])


def test_there_is_always_a_span_though_all_ends_stand_before_all_begins() -> None:
    windows = windows_of(tokenizer(), "who?", "the cat sat in the film of food", 64, 4)
    size = len(windows.offsets)
    logits = np.zeros((len(windows.rows[0].fields["tokens"]), 2), np.float32)
    logits[windows.rows[0].before :, 0][: size // 2] = -100
    logits[windows.rows[0].before :, 1][size // 2 : size] = -100
    assert best_spans([logits], windows, 30)[0].score == -100
