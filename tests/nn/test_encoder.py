"""The whole encoder: a row's states do not depend on its neighbours."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertie.batch import Batch, Ragged
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.feed_forward import DenseSpec
from bertie.nn.pooling import FirstDenseSpec, Pooling
from bertie.nn.residual import PreNormSpec
from bertie.nn.stack import BlockSpec, StackSpec
from bertie.nn.visibility import Causal, Full, Same, Visibility, Window

WIDTH, VOCABULARY = 32, 50
TABLES = (
    TableSpec(field="tokens", size=VOCABULARY),
    TableSpec(field="positions", size=80),
    TableSpec(field="segments", size=2, optional=True),
)
SPEC = EncoderSpec(
    width=WIDTH,
    embeddings=EmbeddingsSpec(tables=TABLES),
    stack=StackSpec(depth=3, block=BlockSpec(mixer=AttentionSpec(num_heads=4), feed_forward=DenseSpec(inner=64))),
    pooler=FirstDenseSpec(),
    initial_std=0.2,
)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    torch.manual_seed(3)
    return SPEC.build().eval()


@settings(max_examples=15)
@given(
    st.lists(st.integers(1, 60), min_size=64, max_size=64),
    st.booleans(),
    st.sampled_from([Full(), Causal(), Window(reach=3)]),
)
def test_a_vector_does_not_depend_on_its_batch(sizes: list[int], in_order: bool, visibility: Visibility) -> None:
    torch.manual_seed(3)
    encoder = SPEC.build().eval()
    rows = [torch.randint(0, VOCABULARY, (size,)) for size in (sorted(sizes, reverse=True) if in_order else sizes)]
    pooling = Pooling(tokens="mean", normalize=True)
    with torch.inference_mode():
        together = encoder(Batch({"tokens": Ragged.of(rows)}), visibility=visibility).states
        vectors = pooling(together, ())
        for row in (0, 1, 20, 40, 63):
            alone = encoder(Batch({"tokens": Ragged.of([rows[row]])}), visibility=visibility).states
            np.testing.assert_allclose(pooling(alone, ())[0], vectors[row], atol=1e-6, rtol=0)


def test_attention_and_layers_are_kept_where_asked(encoder: Encoder, token_rows: Callable[..., Batch]) -> None:
    batch = token_rows([4, 2])
    with torch.inference_mode():
        plain, kept = encoder(batch), encoder(batch, keep_layers=True, keep_attention=True)
    assert plain.layers == plain.attention == ()
    assert len(kept.layers) == 4
    assert [tuple(weights.shape) for weights in kept.attention] == [(2, 4, 4, 4)] * 3
    torch.testing.assert_close(plain.states.values, kept.states.values, atol=1e-5, rtol=1e-5)
    assert kept.layers[-1].equal(kept.states.values)


def test_pool_reads_the_first_state_of_each_row(encoder: Encoder) -> None:
    states = Ragged(torch.randn(6, WIDTH), torch.tensor([2, 1, 3]))
    assert encoder.pooler is not None
    torch.testing.assert_close(encoder.pool(states), encoder.pooler(states.values[[0, 2, 3]]))
    bare = SPEC.replace(pooler=None).build()
    assert bare.pool(states).equal(states.values[[0, 2, 3]])


def test_packed_documents_do_not_see_each_other(encoder: Encoder) -> None:
    tokens = torch.randint(0, VOCABULARY, (7,))
    packed = Batch(
        {
            "tokens": Ragged.of([tokens]),
            "documents": Ragged.of([[0, 0, 0, 1, 1, 1, 1]]),
            "positions": Ragged.of([[0, 1, 2, 0, 1, 2, 3]]),
        }
    )
    apart = Batch({"tokens": Ragged.of([tokens[:3], tokens[3:]])})
    with torch.inference_mode():
        together = encoder(packed, visibility=Same()).states.values
        torch.testing.assert_close(together, encoder(apart).states.values, atol=1e-5, rtol=1e-5)


def test_context_is_the_states_with_their_rows(encoder: Encoder, token_rows: Callable[..., Batch]) -> None:
    encoded = encoder(token_rows([4, 2]))
    context = encoded.context()
    assert context.states is encoded.states.values
    assert context.side.rows.sizes == [4, 2]
    assert context.side.rows.values.tolist() == [0, 1, 2, 3, 0, 1]


def test_first_weights_are_normal_with_the_wanted_spread() -> None:
    torch.manual_seed(0)
    encoder = SPEC.replace(initial_std=0.5).build()
    for name, parameter in encoder.named_parameters():
        if "norm" in name:
            assert (parameter == (1 if name.endswith("weight") else 0)).all(), name
        elif name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif parameter.numel() > 1000:
            assert parameter.std().item() == pytest.approx(0.5, rel=0.1), name


def test_a_spec_round_trips_through_json() -> None:
    changes = {"block.residual": PreNormSpec(norm_eps=1e-5), "visibility": (Causal() & Same(), Full())}
    spec = SPEC.changed({f"stack.{name}": value for name, value in changes.items()})
    assert EncoderSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "relu", "silu", "tanh"])
def test_every_activation_is_the_one_of_its_name(name: str) -> None:
    part = DenseSpec.parse({"inner": 5, "activation": name}).build(4)
    theirs = {"gelu": torch.nn.GELU(), "gelu_tanh": torch.nn.GELU("tanh"), "relu": torch.nn.ReLU()}
    activation = {**theirs, "silu": torch.nn.SiLU(), "tanh": torch.nn.Tanh()}[name]
    states = torch.randn(3, 4)
    torch.testing.assert_close(part(states), part.down(activation(part.up(states))))
