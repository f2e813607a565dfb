"""Recipe: a whole system as a value: tokenizer, encoder, objectives. A variant is its parent with fields replaced."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from bertie.nn.encoder import EncoderSpec
from bertie.objectives.distillation import Distillation
from bertie.objectives.masked_lm import MaskedLM
from bertie.objectives.next_sentence import NextSentence
from bertie.objectives.permutation_lm import PermutationLM
from bertie.objectives.replaced_tokens import ReplacedTokens
from bertie.objectives.sentence_order import SentenceOrder
from bertie.objectives.span_boundary import SpanBoundary
from bertie.spec import Spec
from bertie.tasks.answering import Answering
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Aspects, Classify, MultiLabel, Pair
from bertie.tasks.siamese import Siamese
from bertie.tasks.similarity import Similarity
from bertie.tasks.spacing import Spacing
from bertie.tasks.tagging import Tagging

TokenizerKind = Literal["wordpiece", "byte-bpe", "unigram", "characters", "words"]
AnyObjective = Annotated[
    MaskedLM
    | NextSentence
    | SentenceOrder
    | SpanBoundary
    | PermutationLM
    | ReplacedTokens
    | Distillation
    | Classify
    | Pair
    | MultiLabel
    | Aspects
    | Similarity
    | Siamese
    | Tagging
    | Spacing
    | Answering
    | Choice
    | Rank,
    Field(discriminator="kind"),
]


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
    """`name` says which recipe it came from. No computation depends on it: it finds the recipe in other sizes, and
    decides between foreign architectures that could hold the model equally well."""

    name: str
    tokenizer: TokenizerKind = "wordpiece"
    encoder: EncoderSpec
    objectives: tuple[AnyObjective, ...] = ()

    @field_validator("objectives")
    @classmethod
    def _kinds_differ(cls, objectives: tuple[AnyObjective, ...]) -> tuple[AnyObjective, ...]:
        kinds = [objective.kind for objective in objectives]
        if len(set(kinds)) < len(kinds):
            raise ValueError(f"two objectives are of the same kind: {', '.join(kinds)}")
        return objectives

    @property
    def vocab_size(self) -> int:
        return self.encoder.embeddings.table("tokens").size
