"""The model: random weights from the seed alone, one tied parameter, one shared pass of the encoder."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bertie.batch import Batch, Places, Ragged, Sample, collate
from bertie.errors import SpecError
from bertie.models.model import Model, SharedPass
from bertie.models.recipe import SIZES, Recipe, Size
from bertie.models.recipes import bert
from bertie.nn.encoder import Encoded
from bertie.nn.visibility import Causal
from bertie.objectives.objective import FIRST, positions_in

TINY = bert(Size(depth=2, width=16, num_heads=2), vocab_size=40)


def samples() -> list[Sample]:
    rng = np.random.default_rng(0)
    return [
        {
            "tokens": rng.integers(0, 40, size),
            "segments": np.zeros(size, np.int64),
            "masked": Places("tokens", np.array([1, size - 2])),
            "masked_targets": np.array([7, 8]),
            "partner": np.array(size % 2),
        }
        for size in (9, 4, 12)
    ]


def equal_weights(left: Model, right: Model) -> bool:
    pairs = zip(left.state_dict().items(), right.state_dict().items(), strict=True)
    return all(a == b and x.equal(y) for (a, x), (b, y) in pairs)


def test_the_seed_alone_decides_the_weights_and_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(123)
    expected = torch.rand(3)
    torch.manual_seed(123)
    first = Model.new(TINY, seed=1)
    assert torch.rand(3).equal(expected)
    torch.manual_seed(999)
    assert equal_weights(first, Model.new(TINY, seed=1))
    other = Model.new(TINY, seed=2)
    name = "encoder.stack.blocks.0.mixer.part.project.weight"
    assert not first.get_parameter(name).equal(other.get_parameter(name))


def test_the_tied_table_is_one_parameter() -> None:
    model = Model.new(TINY)
    table = model.get_parameter("encoder.embeddings.tables.tokens.weight")
    assert model.heads["masked-lm"].weight is table
    assert sum(parameter is table for parameter in model.parameters()) == 1
    untied = Model.new(TINY.replace(objectives=(TINY.objectives[0].changed({"head.tied": False}),)))
    assert sum(p.numel() for p in untied.parameters()) - 40 * 16 == sum(
        p.numel() for p in Model.new(TINY.replace(objectives=TINY.objectives[:1])).parameters()
    )


def test_both_uses_of_the_tied_table_learn() -> None:
    model = Model.new(TINY).eval()
    model.loss(collate(samples())).loss().backward()
    gradient = model.get_parameter("encoder.embeddings.tables.tokens.weight").grad
    assert gradient is not None
    assert (gradient.abs().sum(-1) > 0).all()  # every entry takes part in the softmax, not only those in the text
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_parameters_of_base_are_those_of_the_paper() -> None:
    with torch.device("meta"):
        encoder = bert(SIZES["base"]).encoder.build()
    counts = {name: parameter.numel() for name, parameter in encoder.named_parameters()}
    assert sum(counts.values()) == 109_482_240
    linear_biases = {
        f"{name}.bias"
        for name, part in encoder.named_modules()
        if isinstance(part, nn.Linear) and part.bias is not None
    }
    bare = sum(n for name, n in counts.items() if name not in linear_biases and not name.startswith("pooler."))
    assert bare == 108_808_704


def test_losses_of_all_objectives_add() -> None:
    model, batch = Model.new(TINY).eval(), collate(samples())
    report = model.loss(batch)
    assert set(report.losses) == {"masked_lm", "next_sentence"}
    assert report.losses["masked_lm"].count == 6
    assert report.losses["next_sentence"].count == 3
    alone = [Model.new(TINY.replace(objectives=(objective,))).eval() for objective in TINY.objectives]
    for part in alone:
        part.encoder.load_state_dict(model.encoder.state_dict())
        for kind, head in part.heads.items():
            head.load_state_dict(model.heads[kind].state_dict())
    torch.testing.assert_close(report.loss(), sum((part.loss(batch).loss() for part in alone), torch.zeros(())))


class Counting(nn.Module):
    """Counts how often the encoder runs."""

    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.encoder, self.calls = encoder, 0

    def forward(self, batch: Batch, **options: Any) -> Encoded:
        self.calls += 1
        return self.encoder(batch, **options)

    def pool(self, states: Ragged) -> Tensor:
        return self.encoder.pool(states)  # type: ignore[operator]


def test_the_encoder_runs_once_a_batch() -> None:
    model = Model.new(TINY)
    counting = Counting(model.encoder)
    model.encoder = counting  # type: ignore[assignment]
    model.loss(collate(samples()))
    assert counting.calls == 1


def test_a_shared_pass_tells_batches_and_options_apart() -> None:
    counting = Counting(Model.new(TINY).encoder.eval())
    first, second = collate(samples()), collate(samples()[:2])
    shared = SharedPass(counting, first, None)  # type: ignore[arg-type]
    plain = shared(first)
    assert shared(first) is plain
    assert shared(second) is not plain
    assert shared(first, visibility=Causal()) is not plain
    assert shared(first, visibility=Causal()) is shared(first, visibility=Causal())
    assert shared(first, keep_layers=True).layers
    assert counting.calls == 4


def test_a_shared_pass_takes_options_that_hold_tensors() -> None:
    """Contexts and memories of equal shape are different answers, not an error."""
    encoder = Model.new(TINY).encoder.eval()
    batch = collate(samples())
    contexts = [encoder(batch).context() for _ in range(2)]
    counting = Counting(encoder)
    counting.forward = lambda batch, **options: options  # type: ignore[method-assign, assignment]
    shared = SharedPass(counting, batch, None)  # type: ignore[arg-type]
    answers = [shared(batch, context=context) for context in contexts]
    assert answers[0] is not answers[1]
    assert shared(batch, context=contexts[0]) is answers[0]


class Spanning(nn.Linear):
    def auxiliary_loss(self) -> Tensor:
        return self.weight.square().sum()

    def after_step(self) -> None:
        self.weight.data.clamp_(-0.1, 0.1)


def test_parts_are_asked_for_their_own_losses_and_put_right_after_a_step() -> None:
    model = Model.new(TINY)
    assert model.auxiliary_loss() is None
    model.after_step()
    parts = Spanning(2, 3), Spanning(3, 3)
    model.encoder.pooler = nn.Sequential(*parts)  # type: ignore[assignment]
    loss = model.auxiliary_loss()
    assert loss is not None
    torch.testing.assert_close(loss, parts[0].weight.square().sum() + parts[1].weight.square().sum())
    model.after_step()
    assert all(part.weight.abs().max() <= 0.1 for part in parts)


@pytest.mark.parametrize("objectives", [(), TINY.objectives[1:]])
def test_models_without_some_heads(objectives: tuple[Any, ...]) -> None:
    model = Model.new(TINY.replace(objectives=objectives))
    assert list(model.heads) == [objective.name for objective in objectives]
    assert float(model.loss(collate(samples())).loss().detach()) >= 0


def test_two_objectives_of_one_name_are_refused_rather_than_one_forgotten() -> None:
    with pytest.raises(SpecError, match="two objectives have the same name: masked-lm, masked-lm"):
        Recipe.parse({**dict(TINY), "objectives": (TINY.objectives[0], TINY.objectives[0])})


def test_the_last_feed_forward_runs_only_where_an_objective_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses and gradients are those of the whole."""
    model, batch = Model.new(TINY).eval(), collate(samples())
    last = model.get_submodule("encoder.stack.blocks.1.feed_forward.part")
    entered: list[int] = []
    last.register_forward_hook(lambda part, given, left: entered.append(len(given[0])))
    results = []
    for look in (True, False):
        if not look:
            monkeypatch.setattr(type(TINY.objectives[0]), "read_positions", None)
        model.zero_grad(set_to_none=True)
        loss = model.loss(batch).loss()
        loss.backward()
        results.append((loss, [one.grad for one in model.parameters()]))
    assert entered == [6 + 3, 9 + 4 + 12], "two masked tokens and the first one of each row; then all"
    torch.testing.assert_close(results[0], results[1])


def test_rows_without_tokens_have_no_first_one_to_look_at() -> None:
    tokens = Ragged(torch.arange(5), torch.tensor([2, 0, 3, 0]))
    batch = Batch({"tokens": tokens, "masked": torch.tensor([4, 2])})
    assert positions_in((FIRST, "masked"), batch).tolist() == [0, 2, 4]
