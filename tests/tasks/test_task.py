"""What all tasks ask of a row's cells."""

import math
from typing import Any

import numpy as np
import pytest
from tests.tasks.learning import tokenizer

from bertie.errors import InputError
from bertie.nn.heads import SequenceHeadSpec
from bertie.objectives.objective import FIRST
from bertie.tasks.choosing import Choice
from bertie.tasks.classification import Classify
from bertie.tasks.task import encoded, is_empty, text_of


@pytest.mark.parametrize("cell", [None, "", " \n\t\u3000", math.nan])
def test_empty_texts_are_refused(cell: Any) -> None:
    assert is_empty(cell)
    with pytest.raises(InputError, match="the passage is empty"):
        text_of({"passage": cell}, "passage")
    with pytest.raises(InputError, match="the second text is empty"):
        text_of({}, "other", "second text")


def test_what_is_no_text_is_said() -> None:
    assert not is_empty(0)
    with pytest.raises(InputError, match="the text is int, not a text"):
        text_of({"text": 5}, "text")


def test_what_is_cut_is_counted() -> None:
    text = "a good film " * 20
    fields, num_cut = encoded(tokenizer(), 16, text)
    assert len(fields["tokens"]) == len(fields["segments"]) == 16 and num_cut == 60 - 14
    fields, num_cut = encoded(tokenizer(), 16, "a good film", "a dull story")
    assert num_cut == 0 and fields["segments"].tolist() == [0] * 5 + [1] * 4
    assert fields["tokens"].dtype == np.int64


def test_half_a_character_is_refused_as_an_input() -> None:
    with pytest.raises(InputError, match="lone surrogate"):
        encoded(tokenizer(), 16, "a \ud800")


def test_only_a_head_over_first_tokens_looks_at_them_alone() -> None:
    assert Classify(head=SequenceHeadSpec()).read_positions == (FIRST,)
    for tokens in ("last", "mean"):
        head = SequenceHeadSpec(tokens=tokens)
        assert Classify(head=head).read_positions is None and Choice(head=head).read_positions is None
