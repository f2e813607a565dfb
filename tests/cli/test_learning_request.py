"""Words about what learns: specs, defaults, and combinations that say nothing."""

from typing import Any

import pytest

from bertie.cli.learning_request import learning_of, low_rank_of, refuse_together, usual_rate
from bertie.errors import SpecError
from bertie.nn.low_rank import LowRankSpec
from bertie.train.learning_rates import LearningSpec


def test_what_is_not_said_is_none() -> None:
    assert low_rank_of(None, None, None, None) is None
    assert learning_of(None, None, None, 10) is None


def test_adapters_are_in_all_matrices_with_twice_the_rank_for_alpha() -> None:
    spec = low_rank_of(8, None, None, None)
    assert spec == LowRankSpec(rank=8, on=("query", "key", "value", "output", "up", "down"))
    assert spec is not None and spec.scale == 2
    assert low_rank_of(4, 4, 0.1, "query, key,up") == LowRankSpec(
        rank=4, alpha=4, dropout=0.1, on=("query", "key", "up")
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("embeddings", None, None), {"freeze": "embeddings"}),
        (("3", None, 0.9), {"freeze": 3, "layer_decay": 0.9}),
        ((None, "epoch", None), {"unfreeze_every": 157}),
        ((None, "20", None), {"unfreeze_every": 20}),
    ],
)
def test_words_become_a_spec(words: tuple[Any, ...], expected: dict[str, Any]) -> None:
    assert learning_of(words[0], words[1], words[2], 157) == LearningSpec(**expected)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((None, 16, None, None), "--lora-alpha says nothing without --lora"),
        ((None, None, None, "query"), "--lora-on says nothing without --lora"),
        ((8, None, None, "querry"), "no part of a layer 'querry'"),
        ((8, None, None, ""), "no part of a layer ''"),
        ((8, None, 1.0, None), "--lora-dropout: input should be less than 1"),
        ((8, -1.0, None, None), "--lora-alpha: input should be greater than 0"),
    ],
)
def test_wrong_words_about_adapters_are_refused(given: tuple[Any, ...], told: str) -> None:
    with pytest.raises(SpecError, match=told):
        low_rank_of(*given)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("embedding", None, None), "did you mean 'embeddings'"),
        ((None, "often", None), "'often' is no number of steps"),
        (("all", "epoch", None), "none of them can be unfrozen"),
        ((None, None, 1.5), "--layer-decay: input should be less than or equal to 1"),
        ((None, "0", None), "--unfreeze-every: input should be greater than or equal to 1"),
    ],
)
def test_wrong_words_about_layers_are_refused(words: tuple[Any, ...], told: str) -> None:
    with pytest.raises(SpecError, match=told):
        learning_of(words[0], words[1], words[2], 10)


def test_what_says_nothing_together_is_refused() -> None:
    lora, frozen = LowRankSpec(), LearningSpec(freeze="all")
    with pytest.raises(SpecError, match="--features freezes the whole encoder, so --lora"):
        refuse_together(None, lora, True, False)
    with pytest.raises(SpecError, match="--features freezes the whole encoder, so --freeze"):
        refuse_together(frozen, None, True, False)
    with pytest.raises(SpecError, match="leaves nothing for --lora"):
        refuse_together(frozen, lora, False, False)
    for learning, low_rank in ((None, lora), (frozen, None)):
        with pytest.raises(SpecError, match="would keep random weights"):
            refuse_together(learning, low_rank, False, True)
    refuse_together(LearningSpec(freeze=2), lora, False, False)
    refuse_together(LearningSpec(layer_decay=0.9), None, False, True)
    refuse_together(None, None, True, False)


def test_where_little_learns_it_learns_faster() -> None:
    assert usual_rate(None, LowRankSpec()) == 1e-3
    assert usual_rate(LearningSpec(freeze="all"), None) == 1e-3
    assert usual_rate(LearningSpec(freeze=2), None) is None and usual_rate(None, None) is None
