"""Places a model's tensors in its folder: in the file that Hugging Face knows, in folders of models inside the model,
or in a file of heads that have no name there. Names start with that folder or file, unless it is the main file.
"""

from collections.abc import Iterable
from pathlib import Path

from torch import Tensor

from bertie.models.filling import kept_tensors
from bertie.models.folder.weights import SINGLE, write_weights
from bertie.models.layouts.hf_layout import HFLayout
from bertie.models.layouts.names import Entry, entries_of
from bertie.models.model import Model
from bertie.models.recipe import Recipe

HEADS = "heads.safetensors"


def place_tensors(model: Model, layout: HFLayout | None, known: Recipe) -> tuple[list[Entry], list[Entry]]:
    """Returns the entries of all tensors, and those of further names of tied tensors. `known` is the model's recipe
    with the objectives that have a name in the layout."""
    kept = kept_tensors(model)
    if layout is None:
        return [Entry(name, (name,)) for name in kept], []
    heads = tuple(f"heads.{objective.name}." for objective in known.objectives)
    every = {**kept, **dict(model.named_parameters(remove_duplicate=False))}
    named = [name for name in every if name.startswith(heads) or not name.startswith("heads.")]
    found = entries_of(named, layout.names(known))
    entries = [found.get(name) or Entry(name, (f"{HEADS}/{name}",)) for name in kept]
    return entries, [entry for name, entry in found.items() if name not in kept]


def describe_apart(entries: Iterable[Entry]) -> str | None:
    """Names what lies in the file of heads: heads, the decoder, or parts of these and the encoder; None for nothing."""
    entries = list(entries)
    apart = [entry.ours for entry in entries if entry.theirs[0].startswith(f"{HEADS}/")]
    partly = [tuple(entry.ours.split(".")[:2]) for entry in entries if entry.ours not in apart]
    parts = []
    for name in apart:
        side, owner, part = name.split(".")[:3]
        whole = {"encoder": owner, "heads": f"{owner} head"}.get(side, side)
        parts.append(f"{whole}'s {part}" if (side, owner) in partly else whole)
    return ", ".join(dict.fromkeys(parts)) or None


def write_tensors(folder: Path, model: Model, entries: Iterable[Entry], copies: Iterable[Entry], prefix: str) -> None:
    """Models inside the model are complete, with the tensors they share. `prefix` is removed from names in the main
    file."""
    tensors = {**kept_tensors(model), **dict(model.named_parameters(remove_duplicate=False))}
    files: dict[str, dict[str, Tensor]] = {}
    for entry in [*entries, *(copy for copy in copies if "/" in copy.theirs[0])]:
        for theirs, tensor in zip(entry.theirs, entry.split(tensors[entry.ours]), strict=True):
            place, _, name = theirs.rpartition("/")
            files.setdefault(place, {})[name if place else name.removeprefix(prefix)] = tensor.detach().clone()
    for place, content in files.items():
        if place == HEADS:
            write_weights(folder, content, HEADS)
        else:
            (folder / place).mkdir(exist_ok=True)
            write_weights(folder / place, content, SINGLE)
