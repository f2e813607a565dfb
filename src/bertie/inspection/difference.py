"""Compares two recipes: every field that differs, and one line that reads like a formula."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bertie.inspection.wording import describe
from bertie.models.recipe import Recipe
from bertie.spec import Spec

NAMED = {
    "tables": "field",
    "objectives": "name",
}  # their items are identified by a name, those of other lists by number

# The end of a field's dotted name -> words, with the new value in brackets where it matters.
WORDS = {
    "tokenizer": "tokenizer({})",
    "memory_length": "memory({})",
    "tables.positions": "position table",
    "tables.segments": "segment table",
    "tables.languages": "language table",
    "positions.size": "positions({})",
    "positions.offset": "positions(from {})",
    "segments.size": "segments({})",
    "factor": "factorised({})",
    "norm_eps": "norm(eps {})",
    "norm_bias": "bias",
    "bias": "bias",
    "dropout": "dropout({})",
    "width": "width({})",
    "stack": "stack({})",
    "depth": "layers({})",
    "next_blocks": "layers in turn",
    "visibility": "visibility({})",
    "shared": "shared layers({})",
    "groups": "groups({})",
    "input_normed": "normed input",
    "mixer": "mixer({})",
    "scorer": "scores({})",
    "num_heads": "heads({})",
    "feed_forward": "feed-forward({})",
    "inner": "inner({})",
    "activation": "activation({})",
    "residual": "residual({})",
    "pooler": "pooler({})",
    "top": "top({})",
    "decoder": "decoder({})",
    "samples": "samples({})",
    "samples.order": "swapped pairs",
    "choose": "masks({})",
    "rate": "rate({})",
    "replacement.per": "replaced({})",
    "head.transform": "transform",
    "head.tied": "tied output",
    "objectives.masked-lm": "MLM",
    "objectives.next-sentence": "NSP",
    "objectives.sentence-order": "SOP",
    "objectives.span-boundary": "SBO",
    "objectives.permutation-lm": "permutation LM",
    "objectives.causal-lm": "causal LM",
    "objectives.replaced-tokens": "replaced tokens",
    "objectives.distillation": "distillation",
    "objectives.two-way-lm": "two-direction LM",
}


@dataclass(frozen=True)
class Change:
    """None where one of the two has nothing there."""

    field: str  # dotted
    before: Any
    after: Any


def changes(parent: Recipe, recipe: Recipe) -> list[Change]:
    """Returns every field that differs, except the recipe's name. A part of another kind is one change."""
    return list(_walk(parent, recipe.replace(name=parent.name), ()))


def formula(parent: Recipe, recipe: Recipe) -> str:
    """Returns a line like `albert = bert + factorised(128) - NSP + SOP`; a change of several parts comes once."""
    terms = dict.fromkeys(map(_term, changes(parent, recipe)))
    return " ".join([f"{recipe.name} = {parent.name}", *terms])


def _walk(before: Any, after: Any, path: tuple[str, ...]) -> Iterator[Change]:
    if before == after:
        return
    if isinstance(before, Spec) and type(before) is type(after):
        for name in type(before).model_fields:
            yield from _walk(getattr(before, name), getattr(after, name), (*path, name))
    elif _holds_specs(before) and _holds_specs(after):
        ones, others = _items(before, path[-1]), _items(after, path[-1])
        for name in dict.fromkeys([*ones, *others]):
            yield from _walk(ones.get(name), others.get(name), (*path, name))
    else:
        yield Change(".".join(path), before, after)


def _holds_specs(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, Spec) for item in value)


def _items(specs: tuple[Spec, ...], field: str) -> dict[str, Spec]:
    name = NAMED.get(field)
    return {str(getattr(spec, name) if name else number): spec for number, spec in enumerate(specs)}


def _term(change: Change) -> str:
    words = _words(change.field)
    if not change.after:  # none, no or zero
        return f"- {words.partition('(')[0]}"
    return f"+ {words.format(getattr(change.after, 'kind', None) or describe(change.after))}"


def _words(field: str) -> str:
    """Finds the longest end of the name that has words, numbers left out; else returns the name itself."""
    parts = [part for part in field.split(".") if not part.isdigit()]
    ends = (".".join(parts[start:]) for start in range(len(parts)))
    return next((WORDS[end] for end in ends if end in WORDS), f"{field}({{}})")
