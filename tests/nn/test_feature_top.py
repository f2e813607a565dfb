"""The top over a frozen encoder: which features there are, what learns over them, and what they come from."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from bertie.batch import Batch, Ragged
from bertie.errors import SpecError
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.feature_top import FEATURES, LAYER_CHOICES, FeatureTopSpec, LayerChoice, LSTMLayersSpec, ScalarMix
from bertie.nn.feed_forward import DenseSpec
from bertie.nn.lstm import LSTM
from bertie.nn.stack import BlockSpec, StackSpec

WIDTH, DEPTH = 8, 5
SIZES = [4, 1, 3]
TokenRows = Callable[..., Batch]
TABLES = (TableSpec(field="tokens", size=50), TableSpec(field="positions", size=20))
SPEC = EncoderSpec(
    width=WIDTH,
    embeddings=EmbeddingsSpec(tables=TABLES, dropout=0.3),
    stack=StackSpec(depth=DEPTH, block=BlockSpec(mixer=AttentionSpec(num_heads=2), feed_forward=DenseSpec(inner=16))),
    initial_std=0.3,
)
CHOICES: list[LayerChoice] = list(LAYER_CHOICES)


def over(layers: LayerChoice, lstm: LSTMLayersSpec | None = None) -> Encoder:
    torch.manual_seed(0)
    return SPEC.replace(top=FeatureTopSpec(layers=layers, lstm=lstm)).build()


def plain_layers(encoder: Encoder, batch: Batch) -> tuple[Tensor, ...]:
    bare = Encoder(encoder.embeddings, encoder.stack).eval()
    with torch.no_grad():
        return bare(batch, keep_layers=True).layers


@pytest.mark.parametrize("layers", CHOICES)
def test_features_are_made_of_the_layers_of_their_name(layers: LayerChoice, token_rows: TokenRows) -> None:
    encoder, batch = over(layers).train(), token_rows(SIZES)
    kept = plain_layers(encoder, batch)
    wanted = {
        "last": kept[5],
        "second-last": kept[4],
        "sum4": kept[2] + kept[3] + kept[4] + kept[5],
        "concat4": torch.cat([kept[2], kept[3], kept[4], kept[5]], -1),
        "weighted": sum(kept[1:], kept[0]) / 6,  # as long as nothing is learned
    }[layers]
    torch.testing.assert_close(encoder(batch).states.values, wanted)
    assert encoder.top is not None and wanted.shape[-1] == SPEC.replace(top=FeatureTopSpec(layers=layers)).output_width


def test_weights_of_layers_are_a_softmax_and_a_scale() -> None:
    mix = ScalarMix(3)
    layers = torch.randn(4, 3, 2)
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([0.0, 1.0, 2.0]))
        mix.scale.fill_(3.0)
    shares = torch.tensor([1.0, torch.e, torch.e**2]) / (1 + torch.e + torch.e**2)
    torch.testing.assert_close(mix(layers.flatten(1)), 3 * (shares[:, None] * layers).sum(1))
    mix(layers.flatten(1)).square().sum().backward()
    assert mix.weights.grad is not None and mix.weights.grad.abs().min() > 0 and mix.scale.grad is not None


@pytest.mark.parametrize("layers", ["concat4", "weighted"])
def test_lstms_read_the_features_of_each_row_both_ways(layers: LayerChoice, token_rows: TokenRows) -> None:
    encoder, batch = over(layers, LSTMLayersSpec(depth=2, width=6)), token_rows(SIZES)
    assert encoder.top is not None and encoder.top.lstm is not None
    features = encoder.features(batch)
    first, second = encoder.top.lstm.layers
    assert isinstance(first, LSTM) and first.back is not None
    states = encoder(batch).states
    assert states.values.shape == (8, 6) and states.sizes == SIZES
    entering = features.values if encoder.top.mix is None else encoder.top.mix(features.values)
    row = entering[5:8]  # the last one
    read = torch.cat([first.ahead(row[None])[0][0], first.back(row.flip(0)[None])[0][0].flip(0)], -1)
    assert isinstance(second, LSTM) and second.back is not None
    read = torch.cat([second.ahead(read[None])[0][0], second.back(read.flip(0)[None])[0][0].flip(0)], -1)
    torch.testing.assert_close(states.values[5:8], read)


def test_the_width_of_lstms_is_the_encoders_where_it_is_not_said() -> None:
    top = FeatureTopSpec(layers="concat4", lstm=LSTMLayersSpec())
    assert SPEC.replace(top=top).output_width == WIDTH
    assert SPEC.replace(top=FeatureTopSpec(layers="concat4")).output_width == 4 * WIDTH
    assert SPEC.output_width == WIDTH


def test_all_below_is_frozen_and_without_dropout(token_rows: TokenRows) -> None:
    encoder, batch = over("weighted", LSTMLayersSpec()).train(), token_rows(SIZES)
    first, second = encoder(batch).states.values, encoder(batch).states.values
    assert first.equal(second), "there is no dropout"
    first.sum().backward()
    learning = {name for name, parameter in encoder.named_parameters() if parameter.grad is not None}
    assert learning and all(name.startswith("top.") for name in learning)
    assert {name for name, one in encoder.named_parameters() if one.requires_grad} == learning
    assert all(name.startswith(encoder.frozen) for name, one in encoder.named_parameters() if not one.requires_grad)
    assert SPEC.build().frozen == ()


@pytest.mark.parametrize("lstm", [None, LSTMLayersSpec()])
def test_features_that_come_with_the_batch_are_used_as_they_are(
    lstm: LSTMLayersSpec | None, token_rows: TokenRows
) -> None:
    encoder, batch = over("concat4", lstm), token_rows(SIZES)
    features, states = encoder.features(batch), encoder(batch).states
    with torch.no_grad():
        encoder.embeddings.tables["tokens"].weight.zero_()  # type: ignore[operator]
    stored = batch.with_fields({FEATURES: features})
    assert encoder(stored).states.values.equal(states.values)
    assert encoder(stored, positions=torch.tensor([0, 5])).states.values.equal(states.values)


def test_features_of_the_wanted_tokens_alone_stand_at_their_places(token_rows: TokenRows) -> None:
    encoder, batch, wanted = over("sum4"), token_rows(SIZES), torch.tensor([1, 4, 6])
    features, states = encoder.features(batch), encoder(batch).states
    some = Ragged(features.values[wanted], torch.tensor([1, 1, 1]))
    placed = encoder(batch.with_fields({FEATURES: some}), positions=wanted).states
    assert placed.sizes == SIZES
    assert placed.values[wanted].equal(states.values[wanted])
    assert placed.values.abs().sum(-1).count_nonzero() == 3


def test_layers_and_attention_are_still_those_below(token_rows: TokenRows) -> None:
    encoder, batch = over("sum4", LSTMLayersSpec(width=4)), token_rows(SIZES)
    kept = encoder(batch, keep_layers=True, keep_attention=True)
    assert len(kept.layers) == DEPTH + 1 and len(kept.attention) == DEPTH
    for mine, wanted in zip(kept.layers, plain_layers(encoder, batch), strict=True):
        torch.testing.assert_close(mine, wanted)
    assert encoder(batch).layers == ()


@pytest.mark.parametrize(("layers", "depth"), [("second-last", 2), ("sum4", 4), ("concat4", 4)])
def test_a_model_with_too_few_layers_is_refused(layers: LayerChoice, depth: int) -> None:
    few = SPEC.changed({"top": FeatureTopSpec(layers=layers), "stack.depth": depth - 1})
    with pytest.raises(SpecError, match=f"{layers} needs {depth} layers, this model has {depth - 1}"):
        few.build()
    few.changed({"stack.depth": depth}).build()


def test_a_spec_with_a_top_round_trips_through_json() -> None:
    spec = SPEC.replace(top=FeatureTopSpec(layers="weighted", lstm=LSTMLayersSpec(depth=1, width=6)))
    assert EncoderSpec.from_json(spec.to_json()) == spec
