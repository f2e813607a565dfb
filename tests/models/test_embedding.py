"""Flat ids to vectors: in the order of the texts, whatever the batches."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bertie
from bertie.batch import Batch, Ragged
from bertie.errors import SpecError
from bertie.models.embedding import RawVectorsWarning, embed_ids, warn_of_raw_vectors
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.models.sentence import SentenceSettings
from bertie.nn.encoder import Encoder
from bertie.nn.pooling import Pooling, TokenPooling
from bertie.tasks.siamese.siamese import Siamese
from bertie.text.tokenizers.tokens import FlatIds

WIDTH = 16


def build() -> Encoder:
    recipe = bert(Size(depth=2, width=WIDTH, num_heads=2), vocab_size=50)
    return Model.new(recipe.replace(encoder=recipe.encoder.replace(initial_std=0.2))).encoder.eval()


ENCODER = build()


def flat_of(lengths: list[int]) -> FlatIds:
    ids = np.random.default_rng(0).integers(0, 50, sum(lengths))
    return FlatIds(ids, np.array(lengths, np.int64), np.zeros(len(lengths), np.int64))


def embed(flat: FlatIds, pooling: Pooling, max_tokens: int = 100) -> tuple[np.ndarray, int]:
    done: list[int] = []
    with torch.inference_mode():
        vectors = embed_ids(ENCODER, flat, pooling, pooling.width(WIDTH), max_tokens, done.append)
    return vectors, sum(done)


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, 60), max_size=64),
    st.sampled_from([1, 60, 500, 100_000]),
    st.sampled_from(["first", "mean", "max"]),
)
def test_each_vector_is_that_of_its_text_alone(lengths: list[int], max_tokens: int, tokens: TokenPooling) -> None:
    pooling, flat = Pooling(tokens=tokens, normalize=True), flat_of(lengths)
    vectors, _ = embed(flat, pooling, max_tokens)
    assert vectors.shape == (len(lengths), WIDTH)
    assert vectors.dtype == np.float32
    for row, ids in enumerate(flat):
        if not len(ids):
            assert (vectors[row] == 0).all()
        elif row % 7 == 0:
            with torch.inference_mode():
                alone = pooling(ENCODER(Batch({"tokens": Ragged.of([ids])})).states, ())
            np.testing.assert_allclose(vectors[row], alone[0], atol=1e-6, rtol=0)


def test_progress_counts_every_text_also_the_empty_ones() -> None:
    assert embed(flat_of([3, 0, 0, 5]), Pooling())[1] == 4


@pytest.mark.parametrize("layer", [0, 1, -1])
def test_other_layers(layer: int) -> None:
    flat = flat_of([4, 9])
    vectors, _ = embed(flat, Pooling(layers=layer))
    with torch.inference_mode():
        layers = ENCODER(Batch({"tokens": Ragged.of(list(flat))}), keep_layers=True).layers
    np.testing.assert_allclose(vectors[1], layers[layer][4:].mean(0), atol=1e-5)


def test_ids_of_a_part_of_a_larger_array() -> None:
    flat = flat_of([4, 9])
    strided = FlatIds(np.repeat(flat.ids, 2)[::2], flat.lengths, flat.num_truncated)
    np.testing.assert_array_equal(embed(strided, Pooling())[0], embed(flat, Pooling())[0])


def test_threads_of_others_keep_their_number(pristine: Path) -> None:
    """Batches run on threads of one each; neither the caller nor a thread that is made later may notice."""
    model, texts, before = bertie.load(pristine), ["the cat sat on the mat"] * 300, torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        together = model.encode(texts)
        assert torch.get_num_threads() == 2
        with ThreadPoolExecutor(1) as later:
            assert later.submit(torch.get_num_threads).result() == 2
    finally:
        torch.set_num_threads(before)
    assert np.abs(together - model.encode("the cat sat on the mat")).max() <= 1e-6


def test_raw_vectors_are_warned_of_once_a_process(pristine: Path) -> None:
    model = bertie.load(pristine)
    warn_of_raw_vectors.cache_clear()
    with pytest.warns(RawVectorsWarning, match="not trained to compare.*means little; fine-tune it on `similarity"):
        model.encode("the cat")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.encode("the cat")
        bertie.load(pristine).encode(["the cat"])


def test_who_was_made_for_comparing_is_not_warned_of(pristine: Path) -> None:
    raw = bertie.load(pristine)
    assert raw.makes_raw_vectors
    warn_of_raw_vectors.cache_clear()
    recipe = raw.recipe.replace(objectives=(Siamese(),))
    learned = Pretrained(Model.new(recipe), raw.tokenizer)
    pooled = Pretrained(raw.model, raw.tokenizer, SentenceSettings(Pooling()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (learned, pooled):
            assert not model.makes_raw_vectors
            model.encode("the cat")


def test_the_first_numbers_of_a_vector(pristine: Path) -> None:
    model = bertie.load(pristine)
    texts = ["the cat", "paris is the capital of france"]
    whole = model.encode_report(texts, normalize=True).vectors
    cut = model.encode_report(texts, normalize=True, size=5).vectors
    np.testing.assert_allclose(cut, whole[:, :5] / np.linalg.norm(whole[:, :5], axis=1, keepdims=True), atol=1e-6)
    with pytest.raises(SpecError, match="`size=33`: the vectors have 32 numbers"):
        model.encode_report(texts, size=33)
