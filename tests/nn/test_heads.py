"""Output heads against their formulas."""

import pytest
import torch
import torch.nn.functional as F

from bertie.batch import Ragged
from bertie.errors import SpecError
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.embeddings import EmbeddingsSpec, TableSpec
from bertie.nn.encoder import EncoderSpec
from bertie.nn.heads import (
    Classifier,
    Detector,
    RowState,
    SequenceHeadSpec,
    Transform,
    TransformSpec,
    VocabularyHead,
    VocabularyHeadSpec,
    drawn,
)
from bertie.nn.pooling import FirstDenseSpec
from bertie.nn.stack import BlockSpec, StackSpec

WIDTH, SIZE = 6, 11


def encoder(factor: int | None = None) -> EncoderSpec:
    tables = (TableSpec(field="tokens", size=SIZE),)
    return EncoderSpec(
        width=WIDTH,
        embeddings=EmbeddingsSpec(tables=tables, factor=factor),
        stack=StackSpec(depth=1, block=BlockSpec(mixer=AttentionSpec(num_heads=2))),
    )


def test_vocabulary_head_is_transform_norm_and_product_with_the_table() -> None:
    transform = Transform(WIDTH, 4, F.gelu, norm_eps=1e-12)
    head = VocabularyHead(transform, 4, SIZE, tied=False)
    torch.nn.init.normal_(head.get_parameter("bias"))
    states = torch.randn(3, WIDTH)
    hidden = F.layer_norm(F.gelu(states @ transform.dense.weight.T + transform.dense.bias), (4,), eps=1e-12)
    torch.testing.assert_close(head(states), hidden @ head.weight.T + head.get_parameter("bias"))


def test_loss_and_hits_are_those_of_the_logits() -> None:
    head = VocabularyHeadSpec(tied=False).build(encoder(), SIZE)
    states, targets = torch.randn(5, WIDTH), torch.randint(SIZE, (5,))
    logits = head(states)
    losses, correct = head.loss(states, targets)
    torch.testing.assert_close(losses, F.cross_entropy(logits, targets, reduction="none"))
    assert correct.tolist() == (logits.argmax(-1) == targets).float().tolist()


def test_a_tied_head_has_no_table_of_its_own() -> None:
    tied, untied = VocabularyHeadSpec(), VocabularyHeadSpec(tied=False)
    assert "weight" not in dict(tied.build(encoder(), SIZE).named_parameters())
    assert untied.build(encoder(), SIZE).weight.shape == (SIZE, WIDTH)
    assert tied.ties(encoder(), "head.weight") == {"head.weight": encoder().token_table}
    assert untied.ties(encoder(), "head.weight") == {}
    assert encoder().build().get_parameter(encoder().token_table).shape == (SIZE, WIDTH)


def test_a_head_leads_to_the_width_of_narrow_tables() -> None:
    head = VocabularyHeadSpec(tied=False).build(encoder(factor=4), SIZE)
    assert head.weight.shape == (SIZE, 4) == encoder(factor=4).build().get_parameter(encoder().token_table).shape
    assert head(torch.randn(2, WIDTH)).shape == (2, SIZE)


def test_without_a_transform_states_meet_the_table_as_they_are() -> None:
    spec = VocabularyHeadSpec(transform=False, tied=False)
    head, states = spec.build(encoder(), SIZE), torch.randn(2, WIDTH)
    assert dict(head.named_parameters()).keys() == {"weight", "bias"}
    torch.testing.assert_close(head(states), states @ head.weight.T + head.get_parameter("bias"))
    with pytest.raises(SpecError, match="tables of width 4 need a transform from the encoder's width 6"):
        spec.build(encoder(factor=4), SIZE)


def test_a_transform_without_biases_leaves_the_vocabulary_s_own() -> None:
    names = dict(VocabularyHeadSpec(bias=False).build(encoder(), SIZE).named_parameters())
    assert names.keys() == {"transform.dense.weight", "transform.norm.weight", "bias"}


def test_detector_gives_one_logit_a_token() -> None:
    head, states = Detector(WIDTH, F.gelu), torch.randn(4, WIDTH)
    hidden = F.gelu(states @ head.dense.weight.T + head.dense.bias)
    torch.testing.assert_close(head(states), hidden @ head.output.weight[0] + head.output.bias[0])


def test_classifier() -> None:
    head, states = Classifier(6, 3), torch.randn(4, 6)
    torch.testing.assert_close(head(states), states @ head.output.weight.T + head.output.bias)


def test_draws_go_by_probability() -> None:
    logits = torch.tensor([0.1, 0.6, 0.0, 0.3]).log()
    dice = torch.rand(4000, generator=torch.Generator().manual_seed(0))
    shares = drawn(logits.expand(4000, 4), dice).bincount(minlength=4) / 4000
    torch.testing.assert_close(shares, logits.exp(), rtol=0, atol=0.03)
    assert shares[2] == 0
    assert drawn(logits[None], torch.tensor([1.0])).item() == 3, "no die leads out of the vocabulary"


# Heads over rows


def rows() -> Ragged:
    return Ragged(torch.randn(6, WIDTH), torch.tensor([3, 1, 2]))


@pytest.mark.parametrize("tokens", ["first", "last", "mean"])
def test_a_head_over_rows_looks_at_one_state_of_each(tokens: RowState) -> None:
    spec = SequenceHeadSpec(tokens=tokens, transform=None, dropout=0)
    head, states = spec.build(encoder(), 4), rows()
    picked = {"first": lambda row: row[0], "last": lambda row: row[-1], "mean": lambda row: row.mean(0)}[tokens]
    expected = F.linear(torch.stack([picked(row) for row in states.rows()]), head.output.weight, head.output.bias)
    torch.testing.assert_close(head(encoder().build(), states), expected)


def test_a_pooler_stands_for_the_transform_of_a_head() -> None:
    pooled, bare = encoder().replace(pooler=FirstDenseSpec()).build(), encoder().build()
    spec, states = SequenceHeadSpec(dropout=0), rows()
    over_pooler, own = spec.build(encoder().replace(pooler=FirstDenseSpec()), 4), spec.build(encoder(), 4)
    assert over_pooler.transform is None
    assert own.transform is not None and pooled.pooler is not None
    own.output.load_state_dict(over_pooler.output.state_dict())
    own.transform.dense.load_state_dict(pooled.pooler.dense.state_dict())
    torch.testing.assert_close(over_pooler(pooled, states), own(bare, states))


def test_the_transform_of_a_head_over_rows_may_have_a_norm_and_no_bias() -> None:
    spec = SequenceHeadSpec(transform=TransformSpec(activation="gelu", norm_eps=1e-5, bias=False), dropout=0)
    head, states = spec.build(encoder(), 4), rows()
    first = states.values[states.starts]
    hidden = F.layer_norm(F.gelu(first @ head.get_parameter("transform.dense.weight").T), (WIDTH,), eps=1e-5)
    torch.testing.assert_close(head(encoder().build(), states), head.output(hidden))
    assert {name for name, _ in head.named_parameters() if "bias" in name} == {"output.bias"}


def test_a_head_over_rows_drops_in_training_alone() -> None:
    head, states = SequenceHeadSpec(dropout=0.5).build(encoder(), 4), rows()
    body = encoder().build()
    assert not torch.equal(head(body, states), head(body, states))
    head.eval()
    assert torch.equal(head(body, states), head(body, states))
