"""What `bertie.load` gives: vectors, guesses, judgements, states; and plain words where something is missing."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import bertie
from bertie.errors import CapabilityError, FolderError, InputError, SpecError, TokenizerError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.sentence import SentenceSettings
from bertie.nn.pooling import Pooling
from bertie.nn.residual import PreNormSpec

TEXTS = ["the cat sat", "paris is the capital of france.", "", "a", "中文 cat", "x y z " * 6]
LIMIT = 40


@pytest.fixture(scope="module")
def tiny(pristine: Path) -> Pretrained:
    return bertie.load(pristine)


def without_tokenizer(folder: Path) -> Path:
    (folder / "vocab.txt").unlink()
    return folder


# Vectors


def test_one_text_gives_one_vector_many_give_rows(tiny: Pretrained) -> None:
    one, many = tiny.encode("the cat"), tiny.encode(["the cat", "sat"])
    assert one.shape == (32,)
    assert many.shape == (2, 32)
    assert one.dtype == many.dtype == np.float32
    np.testing.assert_allclose(one, many[0], atol=1e-6)
    assert tiny.encode([]).shape == (0, 32)
    np.testing.assert_array_equal(tiny.encode(("the cat", "sat")), many)


@pytest.mark.parametrize("pooling", ["first", "mean", "max"])
@pytest.mark.parametrize("layers", ["last", 0, 1, -2])
def test_pooling_and_layers_of_choice(tiny: Pretrained, pooling: Any, layers: Any) -> None:
    vector = tiny.encode("the cat sat", pooling=pooling, layers=layers)
    states = tiny.hidden_states("the cat sat")[-1 if layers == "last" else layers]
    expected = {"first": states[0], "mean": states.mean(0), "max": states.max(0)}[pooling]
    np.testing.assert_allclose(vector, expected, atol=1e-5)
    unit = tiny.encode("the cat sat", pooling=pooling, layers=layers, normalize=True)
    np.testing.assert_allclose(unit, expected / np.linalg.norm(expected), atol=1e-5)


def test_sum_and_concatenation_of_four_layers(tmp_path: Path, pristine: Path, make_hf: Callable[..., Any]) -> None:
    make_hf(tmp_path, "BertModel", num_hidden_layers=5)
    shutil.copy(pristine / "vocab.txt", tmp_path)
    model = bertie.load(tmp_path)
    states = model.hidden_states("the cat")
    np.testing.assert_allclose(model.encode("the cat", layers="sum4"), states[2:].sum(0).mean(0), atol=1e-5)
    joined = np.concatenate(list(states[2:]), axis=1)
    np.testing.assert_allclose(model.encode("the cat", layers="concat4", pooling="max"), joined.max(0), atol=1e-5)


def test_choices_that_cannot_be(tiny: Pretrained) -> None:
    with pytest.raises(SpecError, match="sum4 needs four layers, this model has 2"):
        tiny.encode("the cat", layers="sum4")
    with pytest.raises(SpecError, match="there is no layer 3; choose 0 to 2"):
        tiny.encode("the cat", layers=3)
    with pytest.raises(SpecError, match="tokens"):
        tiny.encode("the cat", pooling="median")  # type: ignore[arg-type]


def test_a_vector_does_not_depend_on_its_batch(tiny: Pretrained) -> None:
    texts = [" ".join(["cat sat of the"] * (1 + index % 9)) for index in range(64)]
    together = tiny.encode(texts, normalize=True)
    for index in (0, 5, 8, 63):
        np.testing.assert_allclose(tiny.encode(texts[index], normalize=True), together[index], atol=1e-6, rtol=0)
    backwards = tiny.encode(texts[::-1], normalize=True, batch_tokens=50)
    np.testing.assert_allclose(backwards[::-1], together, atol=1e-6, rtol=0)


REAL_SENTENCES = [
    "A man is playing a guitar.",
    "Paris is the capital of France.",
    "",
    "The quick brown fox jumps over the lazy dog, and then it sleeps for the rest of a long, warm afternoon.",
    "Yes.",
    "使用语言模型来预测下一个词。",
    "Two dogs run through a field of tall grass while a small child in a red coat watches them from the gate.",
    "Stock prices fell sharply on Monday.",
]


def test_real_vectors_do_not_depend_on_their_batch(minilm: Path) -> None:
    model = bertie.load(minilm)
    texts = [f"{text} {REAL_SENTENCES[index % 7]}" * (1 + index % 3) for index, text in enumerate(REAL_SENTENCES * 8)]
    mixed = model.encode(texts)
    in_order = sorted(range(64), key=lambda index: len(texts[index]))
    np.testing.assert_allclose(model.encode([texts[index] for index in in_order]), mixed[in_order], atol=1e-6, rtol=0)
    for index in (0, 2, 17, 35, 63):
        np.testing.assert_allclose(model.encode(texts[index]), mixed[index], atol=1e-6, rtol=0)


def test_empty_texts_are_counted_and_equal_the_peers(minilm: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = bertie.load(minilm)
    texts = ["", "a", " \t\n", "\u200b"]
    report = model.encode_report(texts)
    assert report.num_empty == 3
    theirs = SentenceTransformer(str(minilm), device="cpu").encode(texts)
    np.testing.assert_allclose(report.vectors, theirs, atol=1e-5)


def test_what_was_counted(tiny: Pretrained) -> None:
    report = tiny.encode_report(TEXTS)
    assert report.num_tokens == sum(tiny.hidden_states(text).shape[1] for text in TEXTS)
    assert (report.num_truncated, report.num_cut, report.num_empty) == (0, 0, 1)


# Gaps and neighbours


def test_fill_gives_the_best_of_each_gap(tiny: Pretrained) -> None:
    guesses = tiny.fill("[MASK] is the [MASK] of france.", top=3)
    assert [guess.gap for guess in guesses] == [0, 0, 0, 1, 1, 1]
    assert all(guesses[i].probability >= guesses[i + 1].probability for i in (0, 1, 3, 4))
    assert tiny.tokenizer is not None
    for guess in guesses:
        assert 0 < guess.probability < 1
        assert guess.id >= tiny.tokenizer.size or tiny.tokenizer.token_of(guess.id) == guess.token


def test_fill_over_the_whole_vocabulary_sums_to_one_and_names_padding_rows(tiny: Pretrained) -> None:
    guesses = tiny.fill("[MASK]", top=10_000)
    assert len(guesses) == tiny.recipe.vocab_size
    assert sum(guess.probability for guess in guesses) == pytest.approx(1, abs=1e-4)
    assert {guess.id for guess in guesses if guess.token.startswith("<")} == {71, 72, 73}


def test_no_mask_in_the_text(tiny: Pretrained) -> None:
    with pytest.raises(InputError, match=r"the text has no \[MASK\]; put one where a word is missing"):
        tiny.fill("the cat")
    with pytest.raises(InputError, match=r"the text has no \[MASK\] in the first 6 tokens"):
        tiny.fill("cat " * 10 + "[MASK]", max_length=6)


@pytest.mark.parametrize("top", [0, -1])
def test_no_guesses_asked_for(tiny: Pretrained, top: int) -> None:
    with pytest.raises(InputError, match="top"):
        tiny.fill("[MASK]", top=top)


def test_next_sentence_reads_both_texts_in_order(tiny: Pretrained) -> None:
    one, other = tiny.next_sentence("the cat", "sat"), tiny.next_sentence("sat", "the cat")
    assert 0 < one < 1
    assert one != other


@pytest.mark.parametrize(
    ("class_name", "works", "fails"),
    [("BertModel", [], ["fill", "next_sentence"]), ("BertForMaskedLM", ["fill"], ["next_sentence"])],
)
def test_a_folder_without_heads_encodes_and_says_what_is_missing(
    tmp_path: Path, pristine: Path, make_hf: Callable[..., Any], class_name: str, works: list[str], fails: list[str]
) -> None:
    make_hf(tmp_path, class_name)
    shutil.copy(pristine / "vocab.txt", tmp_path)
    model = bertie.load(tmp_path)
    assert np.isfinite(model.encode("the cat")).all()
    calls: dict[str, Callable[[], object]] = {
        "fill": lambda: model.fill("[MASK]"),
        "next_sentence": lambda: model.next_sentence("a", "b"),
    }
    told = {
        "fill": r"no masked-lm head, so it cannot fill gaps; .*BertForMaskedLM or BertForPreTraining",
        "next_sentence": r"no next-sentence head, so it cannot compare sentences; .*BertForNextSentencePrediction",
    }
    for verb in works:
        assert calls[verb]()
    for verb in fails:
        with pytest.raises(CapabilityError, match=told[verb]):
            calls[verb]()


# Folders


def test_a_run_folder_loads(pristine: Path, tmp_path: Path, tiny: Pretrained) -> None:
    shutil.copytree(pristine, tmp_path / "run" / "model")
    np.testing.assert_array_equal(bertie.load(tmp_path / "run").encode("cat"), tiny.encode("cat"))


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="no such folder"):
        bertie.load(tmp_path / "gone")


def test_a_tokenizer_with_more_ids_than_the_table_has_rows(folder: Path) -> None:
    with (folder / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("one\ntwo\nthree\nfour\n")
    with pytest.raises(
        TokenizerError, match="the tokenizer has 75 ids, the embedding only 74 rows; they belong to diff"
    ):
        bertie.load(folder)


def test_a_tokenizer_without_a_mask(folder: Path) -> None:
    text = (folder / "vocab.txt").read_text("utf-8").replace("[MASK]", "[unused]")
    (folder / "vocab.txt").write_text(text, "utf-8")
    model = bertie.load(folder)
    assert np.isfinite(model.encode("the cat")).all()
    with pytest.raises(TokenizerError, match="mask"):
        model.fill("the [MASK]")


def test_the_report_is_kept(
    folder: Path, edit_weights: Callable[[Path, Callable[[dict[str, Tensor]], object]], None]
) -> None:
    edit_weights(folder, lambda tensors: tensors.update({"extra": torch.zeros(1)}))
    assert bertie.load(folder).report.unused == ("extra",)


def test_saved_and_loaded_is_the_same(tiny: Pretrained, tmp_path: Path) -> None:
    assert tiny.save(tmp_path / "saved") == []
    again = bertie.load(tmp_path / "saved")
    assert again.digest == tiny.digest
    assert again.report.clean
    np.testing.assert_array_equal(again.encode(TEXTS), tiny.encode(TEXTS))
    assert again.fill("the [MASK]") == tiny.fill("the [MASK]")
    assert again.next_sentence("a", "b") == tiny.next_sentence("a", "b")


def test_saving_twice_and_over_itself(folder: Path) -> None:
    model = bertie.load(folder)
    before = model.encode(TEXTS)
    model.save(folder)
    np.testing.assert_array_equal(model.encode(TEXTS), before)
    again = bertie.load(folder)
    again.save(folder)
    np.testing.assert_array_equal(bertie.load(folder).encode(TEXTS), before)


def test_saving_over_another_model_leaves_nothing_of_it(folder: Path, tmp_path: Path, tiny: Pretrained) -> None:
    """Tokenizer files and sentence settings of the model before must not be taken for those of the new one."""
    sentence = Pretrained(tiny.model, tiny.tokenizer, SentenceSettings(Pooling(tokens="max", normalize=True), 7))
    sentence.save(tmp_path / "saved")
    assert bertie.load(tmp_path / "saved").settings is not None
    Pretrained(tiny.model).save(tmp_path / "saved")
    again = bertie.load(tmp_path / "saved")
    assert again.settings is None
    assert again.tokenizer is None


def test_what_cannot_be_expressed_is_told_and_warned_of(tiny: Pretrained, tmp_path: Path) -> None:
    recipe = tiny.recipe.changed({"encoder.stack.block.residual": PreNormSpec()})
    model = Pretrained(Model.new(recipe), tiny.tokenizer, SentenceSettings(Pooling(layers="sum4")))
    with pytest.warns(UserWarning, match="transformers"):
        notes = model.save(tmp_path)
    assert len(notes) == 2
    np.testing.assert_array_equal(
        bertie.load(tmp_path).encode("cat"), Pretrained(model.model, tiny.tokenizer).encode("cat")
    )


def test_the_digest_tells_weights_and_recipes_apart(tiny: Pretrained) -> None:
    digests = {
        tiny.digest,
        Pretrained(Model.new(tiny.recipe, seed=1), tiny.tokenizer).digest,
        Pretrained(Model.new(tiny.recipe, seed=2), tiny.tokenizer).digest,
        Pretrained(Model.new(tiny.recipe, seed=2)).digest,
    }
    assert len(digests) == 4


def test_ids_that_the_tokenizer_leaves_out_have_a_name_too(folder: Path) -> None:
    """A vocabulary may have holes; a guess may fall into one."""
    import tokenizers

    vocabulary = {"[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "cat": 60}
    pipeline = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    pipeline.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    without_tokenizer(folder)
    pipeline.save(str(folder / "tokenizer.json"))
    guesses = bertie.load(folder).fill("cat [MASK]", top=74)
    assert len(guesses) == 74
