"""A model that learns new words: other texts keep their vectors bit by bit, new rows are the mean of old ones."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer, BertForPreTraining

import bertie
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert
from bertie.models.table_extension import extend_folder, extend_rows, vocabulary_parameters
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer
from bertie.text.vocab.word_sources import WordSources

OLD = ["The cat sat on the mat.", "A [MASK] of 19 words, isn't it?", "使用语言模型", ""]
NEW = ["The zebrafish microbiome is small.", "Spectroscopically, zebrafish!"]
WORDS = ["zebrafish", "microbiome", "spectroscopically", "cat"]


@pytest.fixture(scope="module")
def word_list(tmp_path_factory: pytest.TempPathFactory) -> WordSources:
    path = tmp_path_factory.mktemp("words") / "words.txt"
    path.write_text("\n".join([*WORDS, "", WORDS[0]]) + "\n", encoding="utf-8")
    return WordSources((str(path),), "list")


def test_a_real_encoder_keeps_the_vectors_of_other_texts(minilm: Path, word_list: WordSources, tmp_path: Path) -> None:
    base = bertie.load(minilm)
    report = extend_folder(minilm, word_list, tmp_path / "out")
    assert report.words == ("zebrafish", "microbiome", "spectroscopically")
    assert report.skipped == {"cat": "it is one piece already"}
    extended = bertie.load(tmp_path / "out")
    assert extended.report.clean
    assert extended.tokenizer is not None and base.tokenizer is not None
    assert np.array_equal(base.encode(OLD), extended.encode(OLD))
    for text in OLD:
        assert extended.tokenizer.encode(text).ids.tolist() == base.tokenizer.encode(text).ids.tolist()

    id = extended.tokenizer.id_of("zebrafish")
    assert id == base.recipe.vocab_size and id in extended.tokenizer.encode(NEW[0]).ids
    rows = dict(extended.model.named_parameters())["encoder.embeddings.tables.tokens.weight"]
    old_ids = base.tokenizer.encode("zebrafish").ids[1:-1]
    assert len(old_ids) > 1
    assert torch.equal(rows[id], rows[torch.from_numpy(old_ids)].mean(0))

    theirs = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    ours = extended.encode(OLD + NEW)
    assert np.abs(theirs.encode(OLD + NEW) - ours).max() < 1e-5
    inputs = AutoTokenizer.from_pretrained(tmp_path / "out")(NEW[0], return_tensors="pt")
    assert inputs["input_ids"][0].tolist() == extended.tokenizer.encode(NEW[0]).ids.tolist()
    with torch.inference_mode():
        states = AutoModel.from_pretrained(tmp_path / "out")(**inputs).last_hidden_state[0].numpy()
    assert np.abs(states - extended.hidden_states(NEW[0])[-1]).max() < 1e-5


@pytest.mark.parametrize("tied", [True, False])
def test_every_table_of_the_vocabulary_grows(tied: bool) -> None:
    recipe = bert(SIZES["tiny"], vocab_size=10)
    recipe = recipe.replace(objectives=(recipe.objectives[0].changed({"head.tied": tied}), *recipe.objectives[1:]))
    model = Model.new(recipe, seed=1)
    torch.nn.init.normal_(model.heads["masked-lm"].get_parameter("bias"))
    names = vocabulary_parameters(recipe)
    assert len(names) == (2 if tied else 3)
    old = dict(model.named_parameters())
    # Row 9 was to spare, rows 10 and 11 are new.
    extended = extend_rows(model, {9: [3, 4], 10: [5], 11: [5, 6, 7]}, size=12)
    for name, parameter in extended.named_parameters():
        if name not in names:
            assert torch.equal(parameter, old[name])
            continue
        assert torch.equal(parameter[:9], old[name][:9])
        assert torch.equal(parameter[9], old[name][[3, 4]].mean(0))
        assert torch.equal(parameter[10], old[name][5])
        assert torch.equal(parameter[11], old[name][[5, 6, 7]].mean(0))
    tokens = extended.encoder.get_parameter("embeddings.tables.tokens.weight")
    assert (extended.heads["masked-lm"].get_parameter("weight") is tokens) == tied
    assert old["encoder.embeddings.tables.tokens.weight"].shape[0] == 10


def test_gaps_are_filled_with_new_words(tmp_path: Path, word_list: WordSources) -> None:
    letters = [chr(number) for number in range(ord("a"), ord("z") + 1)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + letter for letter in letters)]
    model = Model.new(bert(SIZES["tiny"], vocab_size=64), seed=2)
    Pretrained(model, wordpiece_tokenizer(pieces)).save(tmp_path / "base")
    report = extend_folder(tmp_path / "base", word_list, tmp_path / "out")
    assert (report.size, report.num_pieces) == (len(pieces) + 4, 4)
    extended = bertie.load(tmp_path / "out")
    assert extended.recipe.vocab_size == 64  # spare rows were enough
    assert {guess.token for guess in extended.fill("a [MASK]", top=64)} >= set(WORDS)
    assert BertForPreTraining.from_pretrained(tmp_path / "out").config.vocab_size == 64


def test_a_tokenizer_alone_is_extended_too(tmp_path: Path, word_list: WordSources) -> None:
    wordpiece_tokenizer(["[UNK]", "a", "##b"]).save(tmp_path / "base")
    extend_folder(tmp_path / "base", word_list, tmp_path / "out")
    assert "zebrafish" in (tmp_path / "out" / "vocab.txt").read_text("utf-8").split("\n")
