"""The model: an encoder and what its objectives own, built from a recipe. Weights are tied here and nowhere else."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn

from bertie.batch import Batch
from bertie.models.recipe import Recipe
from bertie.nn.encoder import Encoded, Encoder
from bertie.objectives.objective import Objective, Vocabulary, fields_looked_at, places_in
from bertie.objectives.report import LossReport
from bertie.spec import Spec


class Model(nn.Module):
    def __init__(self, recipe: Recipe, vocabulary: Vocabulary | None = None):
        super().__init__()
        self.recipe = recipe
        self.vocabulary = vocabulary or Vocabulary(recipe.vocab_size)
        self.encoder = recipe.encoder.build()
        self.heads = nn.ModuleDict()
        for objective in recipe.objectives:
            owned = objective.build(recipe.encoder, self.vocabulary)
            self.heads[objective.kind] = owned
            for own_name, encoder_name in objective.ties(recipe.encoder).items():
                _share(owned, own_name, self.encoder.get_parameter(encoder_name))

    @classmethod
    def new(cls, recipe: Recipe, seed: int = 0, vocabulary: Vocabulary | None = None) -> "Model":
        """Random weights that depend on the recipe and the seed alone."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return cls(recipe, vocabulary)

    def loss(self, batch: Batch) -> LossReport:
        """All objectives' losses and metrics; the encoder runs once where they look at the same batch."""
        encoder = self._shared_pass(batch)
        report = LossReport()
        for objective in self.objectives_of(batch):
            report = report + objective.loss(self.heads[objective.kind], encoder, batch)
        return report

    def log_shares(self, batch: Batch) -> list[Tensor]:
        """Of all objectives."""
        encoder = self._shared_pass(batch)
        shares: list[Tensor] = []
        for objective in self.objectives_of(batch):
            shares += objective.log_shares(self.heads[objective.kind], encoder, batch)
        return shares

    def objectives_of(self, batch: Batch) -> list[Objective]:
        """Those that a batch is meant for."""
        return [objective for objective in self.recipe.objectives if objective.takes(batch)]

    def _shared_pass(self, batch: Batch) -> Encoder:
        looks_at = fields_looked_at(self.objectives_of(batch))
        wanted = None if looks_at is None else places_in(looks_at, batch)
        return cast(Encoder, SharedPass(self.encoder, batch, wanted))

    def auxiliary_loss(self) -> Tensor | None:
        """What parts themselves ask to be made small, e.g. learned spans."""
        losses = [ask() for ask in self._asked("auxiliary_loss")]
        return torch.stack(losses).sum() if losses else None

    def after_step(self) -> None:
        """Let parts put themselves right after an optimiser step, e.g. clamp."""
        for put_right in self._asked("after_step"):
            put_right()

    def _asked(self, method: str) -> list[Callable[[], Any]]:
        """That method of every part that carries it and may learn."""
        encoder = self.encoder if self.encoder.top is None else self.encoder.top
        parts = (part for learning in (encoder, self.heads) for part in learning.modules())
        return [getattr(part, method) for part in parts if hasattr(part, method)]


class SharedPass:
    """The encoder during one step: asked again for the same batch in the same way, it answers from memory. Of the
    step's own batch it tells no more than is wanted."""

    def __init__(self, encoder: Encoder, batch: Batch, wanted: Tensor | None):
        self._encoder, self._batch, self._wanted = encoder, batch, wanted
        self._answers: list[tuple[Batch, dict[str, Any], Encoded]] = []

    def __call__(self, batch: Batch, **options: Any) -> Encoded:
        for known_batch, known_options, answer in self._answers:
            if known_batch is batch and _same(known_options, options):
                return answer
        wanted = self._wanted if batch is self._batch else None
        answer = self._encoder(batch, **{"wanted": wanted, **options})
        self._answers.append((batch, options, answer))
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)


def _same(known: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Frozen values may be equal; anything with tensors in it must be the same object."""
    alike = (
        known[name] is value or (isinstance(value, Spec) and known[name] == value) for name, value in asked.items()
    )
    return known.keys() == asked.keys() and all(alike)


def _share(module: nn.Module, name: str, parameter: nn.Parameter) -> None:
    *path, last = name.split(".")
    owner = module.get_submodule(".".join(path))
    owner.register_parameter(last, parameter)
