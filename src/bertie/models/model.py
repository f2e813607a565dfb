"""Builds a model from a recipe: an encoder, perhaps a decoder, and what the objectives own. Weights are tied here and
nowhere else."""

from collections.abc import Callable
from typing import Any, Self, cast

import torch
from torch import Tensor, nn

from bertie.batch import Batch
from bertie.devices import seeded
from bertie.models.recipe import Recipe
from bertie.nn.encoder import Encoder
from bertie.nn.memory import Memory
from bertie.objectives.loss_report import LossReport
from bertie.objectives.objective import Objective, Vocabulary, fields_read, positions_in
from bertie.objectives.shared_pass import SharedPass


class Model(nn.Module):
    """`heads` holds what each objective owns, by the objective's name."""

    def __init__(self, recipe: Recipe, vocabulary: Vocabulary | None = None):
        super().__init__()
        self.recipe = recipe
        self.vocabulary = vocabulary or Vocabulary(recipe.vocab_size)
        self.encoder = recipe.encoder.build()
        self.decoder: Encoder | None = None
        if recipe.decoder is not None:
            self.decoder = recipe.decoder.build()
            # Objectives are given the encoder: they find the decoder there, which is yet no part of it.
            object.__setattr__(self.encoder, "decoder", self.decoder)
        self.heads = nn.ModuleDict({one.name: one.build(recipe.encoder, self.vocabulary) for one in recipe.objectives})
        self._tie()

    def _tie(self) -> None:
        spec, decoder = self.recipe.encoder, self.recipe.decoder
        ties = [(self.heads[one.name], one.ties(spec)) for one in self.recipe.objectives]
        if self.decoder is not None and decoder is not None:
            ties.append((self.decoder, decoder.ties(spec)))
        for owned, names in ties:
            for own_name, encoder_name in names.items():
                _share(owned, own_name, self.encoder.get_parameter(encoder_name))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Moves or converts all parameters. Where torch makes new ones for that, it does not know what was tied."""
        super()._apply(fn, recurse)
        self._tie()
        return self

    @classmethod
    def new(cls, recipe: Recipe, seed: int = 0, vocabulary: Vocabulary | None = None) -> "Model":
        """Builds a model with random weights that depend on the recipe and the seed alone."""
        with seeded(seed):
            return cls(recipe, vocabulary)

    def loss(self, batch: Batch) -> LossReport:
        """Returns all objectives' losses and metrics; the encoder runs once where they read the same batch."""
        return self.loss_and_memory(batch, None)[0]

    def loss_and_memory(self, batch: Batch, memory: Memory | None) -> tuple[LossReport, Memory | None]:
        """The loss of rows that continue those that `memory` is of, and the memory for the rows that continue these."""
        shared = self._shared_pass(batch, memory)
        report = LossReport()
        for objective in self.objectives_of(batch):
            own = objective.loss(self.heads[objective.name], cast(Encoder, shared), batch)
            report = report + own.prefixed(objective.prefix)
        return report, shared.memory_after

    def log_probs(self, batch: Batch) -> list[Tensor]:
        """Returns those of all objectives."""
        encoder = cast(Encoder, self._shared_pass(batch))
        found: list[Tensor] = []
        for objective in self.objectives_of(batch):
            found += objective.log_probs(self.heads[objective.name], encoder, batch)
        return found

    def objectives_of(self, batch: Batch) -> list[Objective]:
        """Returns the objectives that a batch is for."""
        return [objective for objective in self.recipe.objectives if objective.takes(batch)]

    def _shared_pass(self, batch: Batch, memory: Memory | None = None) -> SharedPass:
        read_positions = fields_read(self.objectives_of(batch))
        positions = None if read_positions is None else positions_in(read_positions, batch)
        return SharedPass(self.encoder, batch, positions, memory)

    def auxiliary_loss(self) -> Tensor | None:
        """Adds the losses that parts themselves bring, e.g. learned spans."""
        losses = [loss() for loss in self._methods("auxiliary_loss")]
        return torch.stack(losses).sum() if losses else None

    def after_step(self) -> None:
        """Lets parts correct themselves after an optimizer step, e.g. clamp."""
        for correct in self._methods("after_step"):
            correct()

    def _methods(self, name: str) -> list[Callable[[], Any]]:
        """Returns that method of every part that has it and may learn."""
        encoder = self.encoder if self.encoder.top is None else self.encoder.top
        learning = [encoder, self.heads] if self.decoder is None else [encoder, self.decoder, self.heads]
        parts = (part for whole in learning for part in whole.modules())
        return [getattr(part, name) for part in parts if hasattr(part, name)]


def _share(module: nn.Module, name: str, parameter: nn.Parameter) -> None:
    *path, last = name.split(".")
    owner = module.get_submodule(".".join(path))
    owner.register_parameter(last, parameter)
