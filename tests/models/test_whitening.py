"""Whitening: vectors that are spread evenly, in folders that others open."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import bertie
from bertie.errors import CapabilityError, InputError
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.whitening import Moments, whitened, whitening
from bertie.nn.feature_top import FeatureTopSpec, LSTMLayersSpec

TEXTS = [f"{first} {second} {third}" for first in "abcdefg" for second in "hijkl" for third in ("cat", "sat", "the")]


def moments_of(vectors: np.ndarray) -> Moments:
    moments = Moments(vectors.shape[1])
    for part in np.array_split(vectors, 3):
        moments.add(part)
    return moments


def crowded(count: int = 400, width: int = 6) -> np.ndarray:
    """Vectors around one direction, of different spread."""
    rng = np.random.default_rng(0)
    return 5 + rng.normal(size=(count, width)) @ rng.normal(size=(width, width))


def test_moments_are_those_of_all_vectors() -> None:
    vectors = crowded()
    moments = moments_of(vectors)
    np.testing.assert_allclose(moments.mean, vectors.mean(0))
    np.testing.assert_allclose(moments.covariance, np.cov(vectors.T, bias=True), atol=1e-9)


@pytest.mark.parametrize("size", [None, 2])
def test_whitened_vectors_have_mean_0_and_no_covariance(size: int | None) -> None:
    vectors = crowded()
    layer = whitening(moments_of(vectors), size)
    assert layer.bias is not None
    found = vectors @ layer.weight.numpy().T + layer.bias.numpy()
    assert found.shape[1] == (size or 6)
    np.testing.assert_allclose(found.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(np.cov(found.T, bias=True), np.eye(size or 6), atol=1e-3)


def test_the_first_numbers_are_the_directions_of_most_spread() -> None:
    vectors = np.zeros((100, 3))
    vectors[:, 1] = np.linspace(-9, 9, 100)
    vectors[:, 0] = np.sin(np.arange(100))
    vectors[:, 2] = 0.1 * np.cos(7 * np.arange(100))
    weight = whitening(moments_of(vectors), 2).weight.abs().numpy()
    assert weight.argmax(1).tolist() == [1, 0]


def test_too_few_texts_are_refused() -> None:
    with pytest.raises(InputError, match="4 texts determine 3 directions, but 5 are needed"):
        whitening(moments_of(crowded(4)))
    assert whitening(moments_of(crowded(4)), 3).weight.shape == (3, 6)
    with pytest.raises(InputError, match="vectors of 6 numbers cannot become vectors of 7"):
        whitening(moments_of(crowded()), 7)


def test_a_direction_in_which_no_text_differs_is_left_out() -> None:
    flat = crowded() @ np.diag([1, 1, 1, 0, 1, 1])
    assert whitening(moments_of(flat)).weight.shape == (5, 6)
    with pytest.raises(InputError, match="400 texts determine 5 directions, but 6 are needed"):
        whitening(moments_of(flat), 6)


@pytest.mark.parametrize("num_texts", [1, 3])
def test_texts_that_say_next_to_nothing_are_refused(num_texts: int) -> None:
    few = (1000 + crowded(num_texts)).astype(np.float32).repeat(100, 0)
    with pytest.raises(InputError, match=f"texts determine {num_texts - 1} directions, but 5 are needed"):
        whitening(moments_of(few))


def test_texts_longer_than_the_folder_takes_are_refused(pristine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = bertie.load(pristine)
    assert whitened(model, TEXTS, 8, 5).model.stated_limit == 5
    monkeypatch.setattr(model.tokenizer, "max_length", 8)
    with pytest.raises(InputError, match="texts of 9 tokens are longer than the folder takes; `max_length=8`"):
        whitened(model, TEXTS, 8, 9)


def test_a_folder_opens_with_the_same_vectors_here_and_there(pristine: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    made = whitened(bertie.load(pristine), TEXTS, 8)
    assert (made.num_texts, made.num_truncated) == (len(TEXTS), 0)
    vectors = made.model.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), 8)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert np.abs(vectors.mean(0)).max() < 0.2, "no direction is common to all"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.model.save(tmp_path / "white")
    again = bertie.load(tmp_path / "white")
    assert again.settings == made.model.settings and again.digest == made.model.digest
    np.testing.assert_allclose(again.encode(TEXTS), vectors, atol=1e-5)  # what is rounded is spread, too
    theirs = SentenceTransformer(str(tmp_path / "white"), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(theirs, vectors, atol=1e-5)
    with pytest.raises(CapabilityError, match="dense layer"):
        whitened(again, TEXTS)


def test_texts_are_needed(pristine: Path) -> None:
    with pytest.raises(InputError, match="there are no texts"):
        whitened(bertie.load(pristine), [])


def test_a_folder_of_layers_does_not_fit_the_dense_layer(pristine: Path) -> None:
    made = whitened(bertie.load(pristine), TEXTS, 8).model
    with pytest.raises(InputError, match="dense layer takes vectors of 32"):
        made.encode(["a"], layers="concat4")


def test_vectors_may_be_of_another_width_than_the_states_below(pristine: Path) -> None:
    base = bertie.load(pristine)
    recipe = base.recipe.changed({"encoder.top": FeatureTopSpec(lstm=LSTMLayersSpec(width=12)), "objectives": ()})
    made = whitened(Pretrained(Model.new(recipe), base.tokenizer), TEXTS, 8)
    assert recipe.encoder.output_width == 12 != recipe.encoder.width
    assert made.model.encode(TEXTS).shape == (len(TEXTS), 8)
