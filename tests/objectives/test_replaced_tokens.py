"""Replaced tokens: what the generator sees and learns from, what it writes, what the encoder is asked."""

import numpy as np
import pytest
import torch

from bertie.batch import Batch, Places, Sample, collate
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import electra
from bertie.nn.heads import VocabularyHead
from bertie.objectives.objective import Vocabulary
from bertie.objectives.replaced_tokens import Detection, Generator, ReplacedTokens

VOCAB_SIZE, MASK = 50, 4
VOCABULARY = Vocabulary(VOCAB_SIZE, mask=MASK, special=frozenset(range(5)))
RECIPE = electra(Size(depth=2, width=16, num_heads=4), VOCAB_SIZE)


def objective_of(recipe: Recipe) -> ReplacedTokens:
    (objective,) = recipe.objectives
    assert isinstance(objective, ReplacedTokens)
    return objective


def draw_sample(length: int, objective: ReplacedTokens | None = None, seed: int = 0) -> tuple[Sample, Sample]:
    """As it was and as it is corrupted."""
    rng = np.random.default_rng((seed, length))
    sample: Sample = {"tokens": np.array([2, *rng.integers(5, VOCAB_SIZE, length), 3])}
    return sample, (objective or ReplacedTokens()).corrupt(sample, VOCABULARY, rng)


def draw_batch(objective: ReplacedTokens | None = None) -> Batch:
    return collate([draw_sample(length, objective)[1] for length in (20, 40, 60)])


def owned_by(model: Model) -> tuple[Detection, Generator]:
    owned = model.heads["replaced-tokens"]
    assert isinstance(owned, Detection) and owned.generator is not None
    return owned, owned.generator


@pytest.fixture
def model() -> Model:
    """With larger weights than the usual: else all gradients are small."""
    objective = objective_of(RECIPE).changed({"generator.initial_std": 0.2})
    return Model.new(RECIPE.changed({"encoder.initial_std": 0.2, "objectives": (objective,)}), seed=1).eval()


def test_only_the_generator_sees_gaps() -> None:
    before, after = draw_sample(100)
    tokens, gaps, places = np.asarray(before["tokens"]), np.asarray(after["gaps"]), after["masked"]
    assert isinstance(places, Places)
    assert np.asarray(after["tokens"]).tolist() == tokens.tolist()
    assert np.asarray(after["masked_targets"]).tolist() == tokens[places.positions].tolist()
    changed = np.flatnonzero(gaps != tokens)
    assert (gaps[changed] == MASK).all() and set(changed) <= set(places.positions)
    dice = np.asarray(after["dice"])
    assert len(dice) == len(places.positions) == 15
    assert ((dice >= 0) & (dice < 1)).all()


def test_dice_draw_by_the_generators_probabilities(model: Model) -> None:
    head, states = owned_by(model)[1].heads["masked-lm"], torch.randn(1, 4)
    assert isinstance(head, VocabularyHead)
    dice = torch.from_numpy(np.random.default_rng(0).random(4000, dtype=np.float32))
    targets = torch.zeros(4000, dtype=torch.int64)
    _, _, draws = head.loss_and_draws(states.expand(4000, 4).contiguous(), targets, dice)
    shares = draws.bincount(minlength=VOCAB_SIZE) / 4000
    torch.testing.assert_close(shares, head(states)[0].softmax(-1), rtol=0, atol=0.03)


def test_the_generator_learns_from_its_own_loss_alone(model: Model) -> None:
    """Drawing has no gradient: the detector's loss moves what is shared, and nothing else of the generator."""
    losses = model.loss(draw_batch()).losses
    _, generator = owned_by(model)
    shared = [one for one in generator.parameters() if any(one is other for other in model.encoder.parameters())]
    own = [one for one in generator.parameters() if not any(one is other for other in shared)]
    assert len(shared) == 5 and len(own) > 20  # three tables, and their norm's two
    detected, generated = losses["replaced_tokens"].sum, losses["masked_lm"].sum
    by_detector = torch.autograd.grad(detected, [*shared, *own], retain_graph=True, allow_unused=True)
    assert all(gradient is not None and gradient.any() for gradient in by_detector[: len(shared)])
    assert by_detector[len(shared) :] == (None,) * len(own)
    assert all(gradient.any() for gradient in torch.autograd.grad(generated, [*shared, *own], retain_graph=True))
    others = [one for one in model.encoder.parameters() if not any(one is other for other in shared)]
    assert torch.autograd.grad(generated, others, allow_unused=True) == (None,) * len(others)


def test_the_tables_are_the_encoders_own(model: Model) -> None:
    _, generator = owned_by(model)
    for name in ("tables.tokens.weight", "tables.positions.weight", "tables.segments.weight", "norm.weight"):
        own = model.encoder.get_parameter(f"embeddings.{name}")
        assert generator.encoder.get_parameter(f"embeddings.{name}") is own
    assert generator.heads["masked-lm"].get_parameter("weight") is model.encoder.embeddings.tables["tokens"].weight


def test_without_norm_or_its_bias_there_is_less_to_share() -> None:
    for changes, kinds in (({"norm_bias": False}, ["weight"]), ({"norm_eps": None}, [])):
        embeddings = {f"embeddings.{name}": value for name, value in changes.items()}
        generator = objective_of(RECIPE).generator
        assert generator is not None
        objective = ReplacedTokens(generator=generator.changed(embeddings))
        encoder = RECIPE.encoder.changed(embeddings)
        ties = objective.ties(encoder)
        assert [name.rpartition(".")[2] for name in ties if ".norm." in name] == kinds
        Model.new(RECIPE.replace(encoder=encoder, objectives=(objective,)))


def test_loss_is_a_function_of_batch_and_weights_alone(model: Model) -> None:
    batch, state = draw_batch(), torch.get_rng_state()
    assert model.loss(batch).means() == model.loss(batch).means()
    assert torch.equal(state, torch.get_rng_state())
    other = batch.with_fields({"dice": batch.ragged("dice").with_values(1 - batch.tensor("dice"))})
    assert model.loss(other).means()["masked_lm"] == model.loss(batch).means()["masked_lm"]
    assert model.loss(other).means()["replaced_tokens"] != model.loss(batch).means()["replaced_tokens"]


def test_counts_are_known_beforehand_and_losses_are_weighted(model: Model) -> None:
    batch = draw_batch()
    report = model.loss(batch)
    counts = objective_of(model.recipe).counts(batch)
    assert counts == {name: int(figure.count) for name, figure in report.losses.items()}
    assert counts == {"masked_lm": 3 + 6 + 9, "replaced_tokens": 22 + 42 + 62}
    means = report.means()
    assert float(report.loss().detach()) == pytest.approx(means["masked_lm"] + 50 * means["replaced_tokens"], rel=1e-5)


def test_a_token_that_the_generator_guessed_right_is_not_replaced(model: Model) -> None:
    """A generator that always writes 7, and an encoder that takes all tokens for replaced ones."""
    batch = draw_batch()
    targets = batch.tensor("masked_targets").clone()
    targets[::2] = 7
    tokens = batch.ragged("tokens").values.index_put((batch.tensor("masked"),), targets)
    batch = batch.with_fields(
        {
            "tokens": batch.ragged("tokens").with_values(tokens),
            "masked_targets": batch.ragged("masked_targets").with_values(targets),
        }
    )
    owned, generator = owned_by(model)
    with torch.no_grad():
        generator.heads["masked-lm"].get_parameter("bias")[7] = 1e4
        owned.head.output.weight.zero_()
        owned.head.output.bias.fill_(3.0)
    means, num_replaced = model.loss(batch).means(), int((targets != 7).sum())
    assert 0 < num_replaced < len(targets)
    assert means["masked_lm_accuracy"] == pytest.approx(1 - num_replaced / len(targets))
    assert means["replaced_tokens_found"] == 1
    assert means["replaced_tokens_accuracy"] == pytest.approx(num_replaced / len(tokens))


def test_the_encoder_reads_what_was_written(model: Model) -> None:
    batch = draw_batch()
    _, generator = owned_by(model)
    with torch.no_grad():
        generator.heads["masked-lm"].get_parameter("bias")[7] = 1e4
    read: list[torch.Tensor] = []
    model.encoder.register_forward_pre_hook(lambda _part, given: read.append(given[0].tensor("tokens")))
    model.loss(batch)
    written = batch.tensor("tokens").clone()
    written[batch.tensor("masked")] = 7
    assert len(read) == 1
    assert torch.equal(read[0], written)


def test_a_model_without_a_generator_refuses_to_learn() -> None:
    model = Model.new(RECIPE.replace(objectives=(ReplacedTokens(),)))
    assert ReplacedTokens().ties(RECIPE.encoder) == {}
    assert {name.split(".")[2] for name, _ in model.heads.named_parameters(prefix="heads")} == {"head"}
    with pytest.raises(SpecError, match="no generator to train with; start from a `recipe`"):
        model.loss(draw_batch())


def test_tables_of_other_widths_cannot_be_shared() -> None:
    narrow = objective_of(RECIPE).changed({"generator.embeddings.factor": 8})
    with pytest.raises(SpecError, match="share tables, but theirs are 8 and 16 wide"):
        Model.new(RECIPE.replace(objectives=(narrow,)))


def test_narrow_tables_are_shared_too() -> None:
    factor: dict[str, object] = {"embeddings.factor": 8}
    generator = objective_of(RECIPE).generator
    assert generator is not None
    objective = ReplacedTokens(generator=generator.changed(factor))
    model = Model.new(RECIPE.replace(encoder=RECIPE.encoder.changed(factor), objectives=(objective,)))
    assert model.loss(draw_batch(objective)).loss().isfinite()
