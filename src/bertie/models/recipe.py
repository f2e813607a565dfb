"""Describes a whole system as a value: tokenizer, encoder, objectives. A variant is its parent with fields replaced."""

from typing import Annotated, Literal

from pydantic import Field, SerializeAsAny, field_validator, model_validator

from bertie.errors import SpecError
from bertie.nn.encoder import DecoderSpec, EncoderSpec
from bertie.objectives.causal_lm import CausalLM
from bertie.objectives.distillation import Distillation
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence
from bertie.objectives.objective import Objective
from bertie.objectives.permutation_lm import PermutationLM
from bertie.objectives.replaced_tokens import ReplacedTokens
from bertie.objectives.sentence_order import SentenceOrder
from bertie.objectives.span_boundary import SpanBoundary
from bertie.objectives.two_way_lm import TwoWayLM
from bertie.spec import Spec, kind_of, one_of
from bertie.tasks import KINDS

TokenizerKind = Literal["wordpiece", "byte-bpe", "unigram", "characters", "words"]
Source = Literal["corpus", "words", "rows", "pairs"]
PRETRAINING = (
    MaskedLM,
    NextSentence,
    SentenceOrder,
    SpanBoundary,
    PermutationLM,
    ReplacedTokens,
    Distillation,
    TwoWayLM,
    CausalLM,
)
# By kind, what a recipe may name. `bertie.plugins.use` adds to it.
OBJECTIVES: dict[str, type[Objective]] = {**{kind_of(one): one for one in PRETRAINING}, **KINDS}
AnyObjective = Annotated[SerializeAsAny[Objective], one_of(OBJECTIVES, "objective")]


class Size(Spec):
    depth: int = Field(ge=1)
    width: int = Field(ge=1)
    num_heads: int = Field(ge=1)


SIZES = {
    "tiny": Size(depth=2, width=128, num_heads=2),
    "mini": Size(depth=4, width=256, num_heads=4),
    "small": Size(depth=4, width=512, num_heads=8),
    "medium": Size(depth=8, width=512, num_heads=8),
    "base": Size(depth=12, width=768, num_heads=12),
    "large": Size(depth=24, width=1024, num_heads=16),
}


class Recipe(Spec):
    """`name` is the recipe it came from. No computation depends on it: it finds the recipe in other sizes, and
    decides between foreign architectures that could hold the model equally well.

    `learns_from` says how it is trained: on a corpus of pieces (`pretrain`), on the words of running text (`words
    train`), on labelled rows alone (`finetune`), or on pairs of source and target texts."""

    name: str
    tokenizer: TokenizerKind = "wordpiece"
    learns_from: Source = "corpus"
    encoder: EncoderSpec
    decoder: DecoderSpec | None = None
    objectives: tuple[AnyObjective, ...] = ()

    @field_validator("objectives")
    @classmethod
    def _names_differ(cls, objectives: tuple[Objective, ...]) -> tuple[Objective, ...]:
        names = [objective.name for objective in objectives]
        if len(set(names)) < len(names):
            raise ValueError(f"two objectives have the same name: {', '.join(names)}; give one of them another `name`")
        return objectives

    @model_validator(mode="after")
    def _decoder_fits(self) -> "Recipe":
        if self.decoder is not None:
            self.decoder.check(self.encoder)
        return self

    def check_saves(self) -> None:
        """Raises SpecError where a saved model could not be opened: kinds that are not known, parts of other types."""
        if type(self).from_json(self.to_json()) != self:
            raise SpecError(
                "the recipe's type does not describe all of its parts", hint="subclass Recipe with your types"
            )

    @property
    def vocab_size(self) -> int:
        return self.encoder.embeddings.vocab_size


def prediction_losses() -> tuple[str, ...]:
    """Returns the names of all losses whose baseline is predicting tokens by frequency."""
    found = [objective.prediction for objective in OBJECTIVES.values()]
    return tuple(dict.fromkeys(prediction.loss for prediction in found if prediction is not None))
