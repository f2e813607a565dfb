"""Turns a recipe into a tree of its parts with words, shapes and parameter counts.

Nothing is allocated. Counts are of all layers together; what is tied or shared counts once, where it comes first.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from bertie.inspection.wording import describe, describe_part
from bertie.models.model import Model
from bertie.models.recipe import AnyObjective, Recipe
from bertie.nn.encoder import Encoder, EncoderSpec
from bertie.nn.heads import VocabularyHeadSpec
from bertie.nn.stack import BlockSpec, Shared, StackSpec
from bertie.nn.two_directions import AnyStack
from bertie.nn.visibility import Full, Visibility

TIED = "the encoder's own"


@dataclass(frozen=True)
class Part:
    name: str
    words: str = ""
    num_parameters: int = 0
    parts: tuple["Part", ...] = ()


def compose(recipe: Recipe) -> Part:
    with torch.device("meta"):
        model = Model(recipe)
    sizes = Sizes(model)
    objectives = tuple(_objective(one, model.heads[one.name], sizes) for one in recipe.objectives)
    parts = [
        Part("tokenizer", f"{recipe.tokenizer}, {recipe.vocab_size:,} tokens"),
        _encoder(recipe.encoder, sizes, "encoder."),
    ]
    if recipe.decoder is not None:
        parts.append(replace(_encoder(recipe.decoder, sizes, "decoder."), name="decoder"))
    parts.append(Part("objectives", "", sizes.under("heads."), objectives))
    words = f"{recipe.encoder.stack.depth} layers of width {recipe.encoder.width:,}"
    return Part(recipe.name, words, sizes.under(""), tuple(parts))


class Sizes:
    """Numbers of parameters by name, each parameter once."""

    def __init__(self, model: Model):
        self.by_name = {name: parameter.numel() for name, parameter in model.named_parameters()}

    def under(self, *prefixes: str) -> int:
        return sum(size for name, size in self.by_name.items() if name.startswith(prefixes))


def _encoder(spec: EncoderSpec, sizes: Sizes, at: str) -> Part:
    """Describes an encoder whose parameters' names start with `at`."""
    parts = [_embeddings(spec, sizes, f"{at}embeddings."), _stack(spec.stack, spec.width, sizes, f"{at}stack.")]
    if spec.pooler is not None:
        words = f"{describe(spec.pooler)} {spec.width:,} -> {spec.width:,}"
        parts.append(Part("pooler", words, sizes.under(f"{at}pooler.")))
    if spec.top is not None:
        parts.append(Part("top", f"{describe(spec.top)} -> {spec.output_width:,}", sizes.under(f"{at}top.")))
    return Part("encoder", f"width {spec.width:,}", sizes.under(at), tuple(parts))


def _embeddings(spec: EncoderSpec, sizes: Sizes, at: str) -> Part:
    own, inner = spec.embeddings, spec.embeddings.table_width(spec.width)
    parts = []
    for table in own.tables:
        count = sizes.under(f"{at}tables.{table.field}.")
        words = [f"[{table.size:,} x {inner:,}]"]
        words += [f"from row {table.offset}"] if table.offset else []
        parts.append(Part(f"table {table.field}", ", ".join(words if count else [*words, TIED]), count))
    if own.norm_eps is not None:
        count = sizes.under(f"{at}norm.")
        parts.append(Part("norm", f"eps {describe(own.norm_eps)}" + ("" if count else f", {TIED}"), count))
    if own.factor is not None:
        parts.append(Part("projection", f"{inner:,} -> {spec.width:,}", sizes.under(f"{at}project.")))
    return Part("embeddings", f"dropout {describe(own.dropout)}" if own.dropout else "", sizes.under(at), tuple(parts))


def _stack(spec: AnyStack, width: int, sizes: Sizes, at: str) -> Part:
    if not isinstance(spec, StackSpec):
        stacks = spec.stacks(width).items()
        parts = tuple(replace(_stack(one, own, sizes, f"{at}{name}."), name=name) for name, (one, own) in stacks)
        words = f"{spec.kind}: {len(parts)} stacks that share the width"
        return Part("stack", words, sizes.under(at), parts)
    layers: dict[tuple[BlockSpec, Visibility], list[int]] = {}
    for layer in range(spec.depth):
        layers.setdefault((spec.layer_spec(layer), spec.visibility_of(layer)), []).append(layer)
    groups = [_blocks(spec, block, seen, numbers, width, sizes, at) for (block, seen), numbers in layers.items()]
    if final := sizes.under(f"{at}final_norm."):
        groups.append(Part("final norm", "", final))
    facts = [f"{spec.depth} layers", "the first takes its input without a norm" if spec.input_normed else ""]
    return Part("stack", ", ".join(filter(None, facts)), sizes.under(at), tuple(groups))


def _blocks(
    spec: StackSpec, block: BlockSpec, seen: Visibility, layers: list[int], width: int, sizes: Sizes, at: str
) -> Part:
    """Describes all layers of the same block and the same visibility."""

    def under(*names: str) -> int:
        return sizes.under(*(f"{at}blocks.{layer}.{name}." for layer in layers for name in names))

    def sharing(name: Shared) -> str:
        if name not in spec.shared:
            return ""
        return ", shared by " + ("all layers" if spec.groups == 1 else f"each {spec.depth // spec.groups} layers")

    parts = [Part("mixer", describe_part(block.mixer, width) + sharing("mixer"), under("mixer.part"))]
    if block.cross is not None:
        parts.append(Part("cross", describe_part(block.cross, width), under("cross.part")))
    if block.feed_forward is not None:
        words = describe_part(block.feed_forward, width) + sharing("feed-forward")
        parts.append(Part("feed-forward", words, under("feed_forward.part")))
    joints = under("mixer.residual", "cross.residual", "feed_forward.residual")
    parts.append(Part("residual", describe(block.residual), joints))
    which = "" if len(layers) == spec.depth else "layers " + ", ".join(str(layer + 1) for layer in layers)
    words = ", ".join(filter(None, ["" if isinstance(seen, Full) else f"sees {describe(seen)}", which]))
    return Part(f"{len(layers)} x block", words, sum(part.num_parameters for part in parts), tuple(parts))


def _objective(objective: AnyObjective, owned: nn.Module, sizes: Sizes) -> Part:
    """Describes an objective with what it owns: its encoders like the encoder, else modules with their shapes."""
    at = f"heads.{objective.name}."
    fields = {name: value for name, value in dict(objective).items() if name not in ("kind", "name")}
    specs = [value for value in fields.values() if isinstance(value, EncoderSpec)]
    inside = [f"{name}." for name, part in owned.named_modules() if isinstance(part, Encoder)]
    encoders = [
        replace(_encoder(spec, sizes, at + name), name=name.rstrip("."))
        for name, spec in zip(inside, specs, strict=True)
    ]
    tensors: dict[str, dict[str, Tensor]] = {}
    for name, parameter in owned.named_parameters(remove_duplicate=False):
        if not name.startswith(tuple(inside)):
            owner, _, last = name.rpartition(".")
            tensors.setdefault(owner, {})[last] = parameter
    heads = []
    for owner, own in tensors.items():
        prefix = f"{at}{owner}." if owner else at
        shapes = [f"{last} {_shape(tensor, f'{prefix}{last}' in sizes.by_name)}" for last, tensor in own.items()]
        count = sum(sizes.by_name.get(f"{prefix}{last}", 0) for last in own)
        heads.append(Part(owner or "head", ", ".join(shapes), count))
    words = [f"{name} {describe(value)}" for name, value in fields.items() if not _is_part(value)]
    return Part(objective.name, ", ".join(words), sizes.under(at), (*encoders, *heads))


def _is_part(value: object) -> bool:
    """Whether it is listed as a part of its own."""
    return value is None or isinstance(value, EncoderSpec | VocabularyHeadSpec)


def _shape(tensor: Tensor, counted: bool) -> str:
    shape = f"[{' x '.join(f'{size:,}' for size in tensor.shape)}]"
    return shape if counted else f"{shape} ({TIED})"
