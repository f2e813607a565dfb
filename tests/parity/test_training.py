"""Training beside `transformers`: from the same weights, on the same batches, every gradient and twenty steps."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

from bertie.batch import Batch, Sample, collate
from bertie.data.masking import Replacement
from bertie.data.shapes import Pairs
from bertie.models.folder.placement import place_tensors
from bertie.models.layouts import LAYOUTS
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence
from bertie.objectives.objective import Vocabulary
from bertie.train.learning.optimizer import AdamWSpec
from bertie.train.learning.schedule import Linear
from bertie.train.loop import CLIP, take_step

VOCAB_SIZE, MASK, NUM_SPECIAL = 2000, 4, 5
NUM_STEPS, WARMUP = 20, 5
ADAMW = AdamWSpec(rate=1e-3, decay=0.1)


@pytest.fixture
def models(tmp_path: Path) -> tuple[Model, transformers.BertForPreTraining]:
    """Two layers of width 128 without dropout, ours and theirs with the same weights."""
    # Random ids may be 0, the padding, whose row `transformers` gives no gradient.
    masked = MaskedLM(samples=Pairs(), replacement=Replacement(mask_share=0.9, random_share=0))
    recipe = bert(SIZES["tiny"], VOCAB_SIZE).replace(objectives=(masked, NextSentence()))
    without = ("stack.block.mixer.scorer.dropout", "stack.block.residual.dropout", "embeddings.dropout")
    recipe = recipe.changed({f"encoder.{name}": 0.0 for name in without})
    ours = Model.new(recipe, seed=3)
    Pretrained(ours).save(tmp_path)
    return ours.train(), transformers.BertForPreTraining.from_pretrained(tmp_path).train()


def draw_batch(model: Model, seed: int) -> Batch:
    """Eight rows of different lengths, masked by the model's own objectives."""
    rng = np.random.default_rng(seed)
    vocabulary = Vocabulary(VOCAB_SIZE, MASK, frozenset(range(NUM_SPECIAL)))
    samples = []
    for length in rng.integers(20, 65, 8).tolist():
        sample: Sample = {
            "tokens": rng.integers(NUM_SPECIAL, VOCAB_SIZE, length),
            "segments": (np.arange(length) > length // 2).astype(np.int64),
            "partner": np.asarray(rng.integers(0, 2)),
        }
        for objective in model.recipe.objectives:
            sample = objective.corrupt(sample, vocabulary, rng)
        samples.append(sample)
    return collate(samples)


def padded(values: Tensor, lengths: Sequence[int], fill: int = 0) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(values.split(list(lengths))), batch_first=True, padding_value=fill)


def their_loss(model: transformers.BertForPreTraining, batch: Batch) -> Tensor:
    tokens = batch.ragged("tokens")
    lengths = tokens.sizes
    labels = torch.full_like(tokens.values, -100)
    labels[batch.tensor("masked")] = batch.tensor("masked_targets")
    loss = model(
        input_ids=padded(tokens.values, lengths),
        token_type_ids=padded(batch.tensor("segments"), lengths),
        attention_mask=padded(torch.ones_like(tokens.values), lengths),
        labels=padded(labels, lengths, fill=-100),
        next_sentence_label=batch.tensor("partner"),
    ).loss
    assert isinstance(loss, Tensor)
    return loss


def their_optimizer(model: transformers.BertForPreTraining) -> torch.optim.AdamW:
    """As in their example scripts: no decay for names with "bias" or "LayerNorm.weight" in them."""
    groups: list[dict[str, object]] = []
    for decay, bare in ((ADAMW.decay, False), (0.0, True)):
        chosen = [
            parameter
            for name, parameter in model.named_parameters()
            if any(part in name for part in ("bias", "LayerNorm.weight")) == bare
        ]
        groups.append({"params": chosen, "weight_decay": decay})
    return torch.optim.AdamW(groups, lr=ADAMW.rate, betas=ADAMW.betas, eps=ADAMW.eps)


def gradient_of(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


def test_loss_and_every_gradient(models: tuple[Model, transformers.BertForPreTraining]) -> None:
    ours, theirs = models
    batch = draw_batch(ours, seed=0)
    expected = their_loss(theirs, batch)
    expected.backward()
    found = ours.loss(batch).loss()
    found.backward()
    assert found.item() == pytest.approx(expected.item(), abs=1e-5, rel=0)
    own, other = dict(ours.named_parameters()), dict(theirs.named_parameters())
    compared = set()
    for entry in place_tensors(ours, LAYOUTS["bert"], ours.recipe)[0]:
        gradient = gradient_of(own[entry.ours])
        assert float(gradient.abs().max()) > 1e-5, f"{entry.ours} would compare nothing"
        wanted = entry.join([gradient_of(other[name]) for name in entry.theirs], gradient.shape)
        assert float((gradient - wanted).abs().max()) <= 1e-5, entry.ours
        compared.add(entry.ours)
    assert compared == set(own)


def test_twenty_steps(models: tuple[Model, transformers.BertForPreTraining]) -> None:
    ours, theirs = models
    batches = [draw_batch(ours, seed % 4) for seed in range(NUM_STEPS)]  # some again, to be learned
    schedule, optimizer, found = Linear(warmup=WARMUP / NUM_STEPS), ADAMW.build(ours), []
    for step, batch in enumerate(batches):
        factor = schedule.factor(step / NUM_STEPS, (step + 1) / NUM_STEPS)
        found.append(float(take_step(ours, [batch], optimizer, factor, step=step).report.loss()))

    their_adamw, expected = their_optimizer(theirs), []
    for step, batch in enumerate(batches):
        share = (step + 1) / WARMUP if step < WARMUP else (NUM_STEPS - step) / (NUM_STEPS - WARMUP)
        for group in their_adamw.param_groups:
            group["lr"] = ADAMW.rate * share
        loss = their_loss(theirs, batch)
        their_adamw.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), CLIP)
        their_adamw.step()
        expected.append(loss.item())
    assert found == pytest.approx(expected, abs=1e-4, rel=0)
    assert expected[-1] < expected[0] - 0.5, "twenty steps that learn nothing would prove nothing"
