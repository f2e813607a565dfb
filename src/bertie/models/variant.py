"""Changes a recipe's objectives, and gives a model their heads.

Which tokens are masked, how many, and what is learned from pairs of sentences can be set wherever tokens are masked.
"""

from collections.abc import Collection

import torch

from bertie.data.masking import Chooser, EachToken, NGrams, Spans, WholeWords
from bertie.data.shapes import Pairs, Segments
from bertie.errors import SpecError
from bertie.models.model import Model
from bertie.models.recipe import AnyObjective, Recipe
from bertie.objectives.next_sentence import NextSentence
from bertie.objectives.sentence_order import SentenceOrder

MASKS: dict[str, Chooser] = {"token": EachToken(), "whole-word": WholeWords(), "span": Spans(), "n-gram": NGrams()}
SENTENCES = {"nsp": NextSentence, "sop": SentenceOrder, "none": None}
SENTENCE_KINDS = ("next-sentence", "sentence-order")


def vary(
    recipe: Recipe, *, mask: str | None = None, mask_rate: float | None = None, sentences: str | None = None
) -> Recipe:
    """Replaces what is not None; `mask` and `sentences` are names in the tables above."""
    if mask is None and mask_rate is None and sentences is None:
        return recipe
    if not any(hasattr(objective, "choose") for objective in recipe.objectives):
        what = f"the recipe {recipe.name!r} masks no tokens"
        raise SpecError(what, hint="leave out `mask`, `mask_rate` and `sentences`")
    options = {"choose": mask and MASKS[mask], "rate": mask_rate}
    given = {name: value for name, value in options.items() if value is not None}
    objectives = [one.replace(**given) if hasattr(one, "choose") else one for one in recipe.objectives]
    return recipe.replace(objectives=objectives if sentences is None else _with_sentences(objectives, sentences))


def _with_sentences(objectives: list[AnyObjective], sentences: str) -> list[AnyObjective]:
    """Gives all objectives the same samples: pairs where their relation is predicted, else single segments."""
    kept = [objective for objective in objectives if objective.kind not in SENTENCE_KINDS]
    chosen = SENTENCES[sentences]
    if chosen is None:
        return [one.replace(samples=Segments()) if isinstance(one.samples, Pairs) else one for one in kept]
    pairs = Pairs(order=chosen is SentenceOrder)
    return [*(one.replace(samples=pairs) for one in kept), chosen(samples=pairs)]


def with_recipe(model: Model, recipe: Recipe, seed: int, new_heads: Collection[str] = ()) -> Model:
    """Returns the model under a recipe of other objectives. Heads of a known name keep their weights, except for those
    in `new_heads`."""
    if recipe == model.recipe:
        return model
    changed = Model.new(recipe, seed, model.vocabulary)
    known = dict(model.named_parameters(remove_duplicate=False))
    with torch.no_grad():
        for name, parameter in changed.named_parameters():
            is_new = any(name.startswith(f"heads.{head}.") for head in new_heads)
            if not is_new and name in known and known[name].shape == parameter.shape:
                parameter.copy_(known[name])
    return changed
