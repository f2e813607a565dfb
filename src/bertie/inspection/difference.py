"""How two recipes differ: both enter; every field that was changed leaves, and one line that reads like a formula."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bertie.inspection.wording import told
from bertie.models.recipe import Recipe
from bertie.spec import Spec

NAMED = {"tables": "field", "objectives": "kind"}  # their items are known by a name, those of other lists by number

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
    "others": "layers in turn",
    "visibility": "visibility({})",
    "shared": "shared layers({})",
    "groups": "groups({})",
    "normed": "normed input",
    "mixer": "mixer({})",
    "scorer": "scores({})",
    "num_heads": "heads({})",
    "feed_forward": "feed-forward({})",
    "inner": "inner({})",
    "activation": "activation({})",
    "residual": "residual({})",
    "pooler": "pooler({})",
    "top": "top({})",
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
    "objectives.replaced-tokens": "replaced tokens",
    "objectives.distillation": "distillation",
}


@dataclass(frozen=True)
class Change:
    """None where one of the two has nothing there."""

    field: str  # dotted
    before: Any
    after: Any


def changes(parent: Recipe, recipe: Recipe) -> list[Change]:
    """Every field that differs, but for the recipe's name. What is of another kind is one change as a whole."""
    return list(_walk(parent, recipe.replace(name=parent.name), ()))


def formula(parent: Recipe, recipe: Recipe) -> str:
    """Like `albert = bert + factorised(128) - NSP + SOP`; the same said of several parts is said once."""
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
    return f"+ {words.format(getattr(change.after, 'kind', None) or told(change.after))}"


def _words(field: str) -> str:
    """By the longest end of the name that has words, numbers left out; else the name itself."""
    parts = [part for part in field.split(".") if not part.isdigit()]
    ends = (".".join(parts[start:]) for start in range(len(parts)))
    return next((WORDS[end] for end in ends if end in WORDS), f"{field}({{}})")
