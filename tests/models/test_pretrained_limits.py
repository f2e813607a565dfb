"""Texts that are too long and ids that cannot be: refused, or cut as asked and told."""

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertie
from bertie.errors import InputError, TokenizerError
from bertie.models.inputs import TruncationWarning
from bertie.models.pretrained import Pretrained


@pytest.fixture(scope="module")
def tiny(pristine: Path) -> Pretrained:
    return bertie.load(pristine)


def without_tokenizer(folder: Path) -> Path:
    (folder / "vocab.txt").unlink()
    return folder


def test_a_text_that_is_too_long_is_refused_where_nobody_asked_to_cut(tiny: Pretrained) -> None:
    texts = ["a", "cat " * 50]
    with pytest.raises(InputError, match=r"text 1 has 52 tokens, .* takes at most 40; give `max_length=40` to cut"):
        tiny.encode(texts)
    for verb in (tiny.hidden_states, tiny.attention, tiny.fill):
        with pytest.raises(InputError, match=r"the text has .* tokens, the model takes at most 40"):
            verb("[MASK] " + "cat " * 50)


def test_what_is_cut_as_asked_is_counted_and_warned_of(tiny: Pretrained) -> None:
    texts = ["cat " * 50, "cat", "sat " * 12]
    report = tiny.encode_report(texts, max_length=10)
    assert (report.num_truncated, report.num_cut, report.num_empty) == (2, 42 + 4, 0)
    with pytest.warns(TruncationWarning, match="2 of 3 texts were too long and were cut: 46 tokens were not read"):
        vectors = tiny.encode(texts, max_length=10)
    np.testing.assert_allclose(vectors[0], tiny.encode("cat " * 8), atol=1e-6)


def test_texts_that_fit_are_not_warned_of(tiny: Pretrained) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny.encode(["cat " * 38, ""], max_length=40)


def test_a_text_cut_to_nothing_is_cut_not_empty(tiny: Pretrained) -> None:
    report = tiny.encode_report(["cat", ""], max_length=2)
    assert (report.num_truncated, report.num_empty) == (1, 1)


@pytest.mark.parametrize("verb", ["fill", "next_sentence", "hidden_states", "attention"])
def test_every_verb_warns_of_what_it_cut(tiny: Pretrained, verb: str) -> None:
    call: Callable[..., Any] = getattr(tiny, verb)
    arguments = ("the cat", "sat " * 20) if verb == "next_sentence" else ("[MASK] " + "cat " * 20,)
    with pytest.warns(TruncationWarning):
        call(*arguments, max_length=8)


@pytest.mark.parametrize("max_length", [0, -3, 1, 41])
def test_a_limit_that_cannot_be(tiny: Pretrained, max_length: int) -> None:
    with pytest.raises((InputError, TokenizerError), match="max_length"):
        tiny.encode(["a"], max_length=max_length)


@pytest.mark.parametrize(
    ("in_settings", "in_tokenizer", "expected"), [(8, None, 8), (None, 9, 9), (30, 9, 9), (99, 77, 40)]
)
def test_the_limit_that_a_folder_states_is_applied(
    folder: Path, in_settings: int | None, in_tokenizer: int | None, expected: int
) -> None:
    if in_settings:
        modules = [{"path": "", "type": "sentence_transformers.models.Transformer"}]
        (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": in_settings}), "utf-8")
    if in_tokenizer:
        (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": in_tokenizer}), "utf-8")
    model = bertie.load(folder)
    assert model.stated_limit == expected
    report = model.encode_report(["cat " * 60])
    assert report.num_tokens == expected
    assert report.num_cut == 62 - expected


def test_a_folder_without_a_tokenizer_works_with_ids(folder: Path, tiny: Pretrained) -> None:
    model = bertie.load(without_tokenizer(folder))
    assert model.tokenizer is None
    assert tiny.tokenizer is not None
    ids = tiny.tokenizer.encode("the cat sat").ids
    for given_ids in (ids, ids.tolist(), tuple(ids), ids.astype(np.int32)):
        np.testing.assert_array_equal(model.hidden_states(given_ids), tiny.hidden_states("the cat sat"))
    assert model.hidden_states(ids).shape == (3, 5, 32)
    weights = model.attention(ids)
    assert weights.shape == (2, 4, 5, 5)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    for call in (lambda: model.encode(["a"]), lambda: model.fill("[MASK]"), lambda: model.hidden_states("text")):
        with pytest.raises(TokenizerError, match="the folder has no tokenizer; give token ids, or put its tokenizer"):
            call()


@pytest.mark.parametrize(("ids", "wrong"), [([2, 74], 74), ([-1, 2], -1), ([2**40], 2**40)])
def test_ids_out_of_range(tiny: Pretrained, ids: list[int], wrong: int) -> None:
    with pytest.raises(InputError, match=f"id {wrong} is outside the vocabulary of 74"):
        tiny.hidden_states(ids)


@pytest.mark.parametrize("ids", [[], [[1, 2]], [1.7], ["a"], [[1], [2, 3]], [None], [2**70]])
def test_what_is_no_row_of_ids(tiny: Pretrained, ids: Any) -> None:
    with pytest.raises(InputError):
        tiny.hidden_states(ids)


def test_too_many_ids(tiny: Pretrained) -> None:
    with pytest.raises(InputError, match="has 41 tokens, the model takes at most 40"):
        tiny.hidden_states([5] * 41)


def test_ids_are_cut_or_refused_but_options_are_never_ignored(tiny: Pretrained) -> None:
    with pytest.raises(InputError):
        tiny.hidden_states([2, 5, 3], pair="the cat")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)
        try:
            cut = tiny.hidden_states([5] * 10, max_length=4)
        except InputError:
            return
    assert cut.shape[1] <= 4


def test_a_pair_for_a_model_with_one_segment(tmp_path: Path, pristine: Path, make_hf: Callable[..., Any]) -> None:
    make_hf(tmp_path, type_vocab_size=1)
    shutil.copy(pristine / "vocab.txt", tmp_path)
    model = bertie.load(tmp_path)
    assert model.hidden_states("the cat").shape == (3, 4, 32)
    with pytest.raises(InputError, match="segment"):
        model.hidden_states("the cat", "sat")
