"""Adversarial training: adds to the gradients of a step those of passes whose embeddings were moved.

What the embeddings return is moved, every row by a vector of one length, in a direction that is bad for the model.
Miyato, Dai and Goodfellow, 2017, section 3. All passes over a batch use the same dropout, drawn again from the same
state of torch's generator. So they differ in the move alone: the direction is bad for the very network that is moved,
and without a move there is no divergence, which the power iteration relies on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, Literal, TypeVar

import torch
from pydantic import Field
from torch import Tensor, nn

from bertie.batch import Batch, Ragged
from bertie.devices import RandomState, device_of, widest_float
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.objectives.loss_report import Figure, LossReport
from bertie.objectives.objective import Objective
from bertie.spec import Spec
from bertie.train.distribution import Ranks
from bertie.train.learning.gradients import add_gradients

Result = TypeVar("Result")
SHORTEST = 1e-100  # a direction that is shorter is none


class Replay:
    """A pass over one batch that can be run again: with the same dropout, and with `moves` added to what the embeddings
    return. The first run finds out which rows are embedded; its moves are 0."""

    def __init__(self, embeddings: nn.Module, batch: Batch):
        self.embeddings, self.batch = embeddings, batch
        self.moves: list[Ragged] = []  # [T, H] of each call; leaves, so that they have gradients
        self._begun = RandomState.now(device_of(embeddings))

    def run(self, compute: Callable[[Batch], Result]) -> Result:
        calls = count()

        def moved(module: nn.Module, inputs: tuple[Any, ...], states: Tensor) -> Tensor:
            call = next(calls)
            if call == len(self.moves):
                rows: Ragged = inputs[0].ragged("tokens")  # of the batch that is embedded: a task may make its own
                self.moves.append(rows.with_values(torch.zeros_like(states, requires_grad=True)))
            return states + self.moves[call].values

        hook = self.embeddings.register_forward_hook(moved)
        try:
            # The first run draws as any pass does; later ones leave no trace in the generator.
            with self._begun.again(keep=not self.moves):
                return compute(self.batch)
        finally:
            hook.remove()

    def move(self, directions: Sequence[Tensor | None], length: float) -> None:
        """From now on every row by this length; rows without a direction stay where they are."""
        for call, direction in enumerate(directions):
            rows = self.moves[call]
            values = torch.zeros_like(rows.values) if direction is None else scaled(rows.with_values(direction), length)
            self.moves[call] = rows.with_values(values.detach().requires_grad_())


def scaled(rows: Ragged, length: float) -> Tensor:
    """[T, H] every row, as one vector, of this length; a row of zeros stays what it is."""
    values = rows.values.to(widest_float(rows.device).dtype)  # squares of small gradients are 0 in float32
    squares = values.new_zeros(rows.num_rows).index_add(0, rows.row_ids, values.square().sum(-1))
    factors = length / squares.sqrt().clamp(min=max(SHORTEST, torch.finfo(values.dtype).tiny))
    return (values * factors[rows.row_ids, None]).to(rows.values.dtype)


def divergence(expected: Sequence[Tensor], found: Sequence[Tensor]) -> Tensor:
    """Sums the Kullback-Leibler divergence of all predictions, log-probabilities [N, K], from the expected ones."""
    sums = []
    for theirs, ours in zip(expected, found, strict=True):
        gaps = (theirs - ours).masked_fill(theirs.isneginf(), 0.0)  # what is impossible is so for both
        sums.append((theirs.exp() * gaps).sum())
    return torch.stack(sums).sum()


@dataclass(frozen=True)
class PlainStep:
    """A step whose ordinary gradients have been added up."""

    model: Model
    replays: Sequence[Replay]  # one for each micro-batch
    forward: Callable[[Batch], LossReport]
    counts: Mapping[str, Tensor]  # the denominators of the losses, in the whole step
    ranks: Ranks


def adversarial_step(
    model: Model,
    micros: Sequence[Batch],
    forward: Callable[[Batch], LossReport],
    ranks: Ranks,
    adversary: "Adversary",
) -> LossReport:
    """The ordinary step over passes that can be replayed, and then the adversary's passes."""
    replays: list[Replay] = []

    def replayable(micro: Batch) -> LossReport:
        replays.append(Replay(model.encoder.embeddings, micro))
        return replays[-1].run(forward)

    report, counts = add_gradients(model, micros, replayable, ranks)
    return sum(adversary.learn(PlainStep(model, replays, forward, counts, ranks)), report)


class Adversary(Spec):
    def check(self, recipe: Recipe) -> None:
        """Refuses objectives that it cannot work with."""

    def learn(self, step: PlainStep) -> list[LossReport]:
        """Adds its gradients; returns the losses of the moved rows, as metrics."""
        raise NotImplementedError


class FGM(Adversary):
    """The fast gradient method: rows move where their loss climbs most steeply, and are learned once more. A step costs
    as much as two."""

    kind: Literal["fgm"] = "fgm"
    epsilon: float = Field(default=1.0, ge=0)  # how far a row moves

    def learn(self, step: PlainStep) -> list[LossReport]:
        reports = []
        for replay in step.replays:
            replay.move([move.values.grad for move in replay.moves], self.epsilon)
            report = replay.run(step.forward)
            report.loss(step.counts).backward()
            metrics = {f"adversarial_{name}": figure for name, figure in report.detached().losses.items()}
            reports.append(LossReport({}, metrics))
        return reports


class VirtualAdversarial(Adversary):
    """Rows move where their predictions change most, whatever the labels, and that change is to be small. The direction
    is found by power iteration from a random one. Always in float32: fewer bits would drown what `xi` changes."""

    kind: Literal["vat"] = "vat"
    epsilon: float = Field(default=5.0, ge=0)  # how far a row moves
    xi: float = Field(default=0.1, gt=0)  # how far while the direction is sought
    iterations: int = Field(default=1, ge=1)
    weight: float = Field(default=1.0, ge=0)  # of the mean divergence in the whole loss

    def check(self, recipe: Recipe) -> None:
        for objective in recipe.objectives:
            if type(objective).log_probs is Objective.log_probs:
                what = f"{objective.kind} predicts no probabilities, which virtual adversarial training compares"
                raise SpecError(what, hint="use `adversarial=fgm`")

    def learn(self, step: PlainStep) -> list[LossReport]:
        self.check(step.model.recipe)
        with torch.no_grad():
            plain = [replay.run(step.model.log_probs) for replay in step.replays]
        own_counts = [torch.tensor(sum(map(len, shares))) for shares in plain]
        whole = step.ranks.sum_counts({"divergence": torch.stack(own_counts).sum()})["divergence"].clamp(min=1)
        reports = []
        for replay, expected, own_count in zip(step.replays, plain, own_counts, strict=True):
            self.seek(step.model, replay, expected)
            found = divergence(expected, replay.run(step.model.log_probs))
            (self.weight * found / whole).backward()
            reports.append(LossReport({}, {"divergence": Figure(found.detach(), own_count)}))
        return reports

    def seek(self, model: Model, replay: Replay, expected: Sequence[Tensor]) -> None:
        """Leaves the replay moved in the worst direction that was found."""
        directions: Sequence[Tensor | None] = [torch.randn_like(move.values) for move in replay.moves]
        for _ in range(self.iterations):
            replay.move(directions, self.xi)
            found = divergence(expected, replay.run(model.log_probs))
            directions = torch.autograd.grad(found, [move.values for move in replay.moves], allow_unused=True)
        replay.move(directions, self.epsilon)


AnyAdversary = Annotated[FGM | VirtualAdversarial, Field(discriminator="kind")]
