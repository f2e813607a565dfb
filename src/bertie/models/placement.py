"""Where a model's tensors lie in its folder: the file that Hugging Face knows, folders of companions inside it, and a
file of heads that have no name there."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from torch import Tensor, nn

from bertie.errors import FolderError
from bertie.models.filling import FoundTensors, kept_tensors
from bertie.models.layouts.layout import Entry, HFLayout
from bertie.models.model import Model
from bertie.models.weights import SINGLE, read_file, read_weights, write_weights

MAIN, HEADS = "", "heads.safetensors"
Placement = Mapping[str, list[Entry]]  # by MAIN, HEADS, or the name of a companion's folder


def placement(model: Model, layout: HFLayout | None) -> Placement:
    if layout is None:
        return {MAIN: [Entry(name, (name,)) for name in kept_tensors(model)]}
    recipe = layout.known(model.recipe)
    places = {MAIN: layout.entries(recipe)}
    for folder, companion in layout.companions(recipe).items():
        entries = layout.entries(companion.recipe)
        places[folder] = [replace(entry, ours=companion.prefix + entry.ours) for entry in entries]
    named = {entry.ours for entries in places.values() for entry in entries}
    if rest := [name for name in kept_tensors(model) if name not in named]:
        places[HEADS] = [Entry(name, (name,)) for name in rest]
    return places


def told_apart(places: Placement) -> str:
    """What of the model lies in the file of heads, in words: a head, a part of one, or a part of the encoder."""
    named = {entry.ours.split(".")[1] for place in places if place != HEADS for entry in places[place]}
    told = []
    for entry in places[HEADS]:
        floor, owner, part = entry.ours.split(".")[:3]
        whole = owner if floor == "encoder" else f"{owner} head"
        told.append(f"{whole}'s {part}" if owner in named else whole)
    return ", ".join(dict.fromkeys(told))


def write_tensors(folder: Path, model: Model, layout: HFLayout | None, places: Placement) -> None:
    tensors = all_tensors(model)
    for place, entries in places.items():
        split = {
            name: tensor.detach().clone()
            for entry in entries
            for name, tensor in zip(entry.theirs, entry.split(tensors[entry.ours]), strict=True)
        }
        if place == MAIN and layout and not layout.known(model.recipe).objectives:
            split = {name.removeprefix(layout.prefix): tensor for name, tensor in split.items()}
        if place == HEADS:
            write_weights(folder, split, HEADS)
        else:
            (folder / place).mkdir(exist_ok=True)
            write_weights(folder / place, split, SINGLE)


def read_main(folder: Path, layout: HFLayout | None) -> FoundTensors:
    return FoundTensors.of(read_weights(folder), layout)


def read_others(folder: Path, found: FoundTensors, layout: HFLayout | None, places: Placement) -> FoundTensors:
    """With what lies beside the main file, under names that begin with the place."""
    for place in places:
        if place == HEADS:
            if not (folder / HEADS).exists():
                raise FolderError(f"has no {HEADS}, which its recipe asks for", where=str(folder))
            found = found.joined(place, FoundTensors.of(read_file(folder / HEADS), None))
        elif place != MAIN:
            found = found.joined(place, FoundTensors.of(read_weights(folder / place), layout))
    return found


def entries_to_fill(model: Model, places: Placement) -> tuple[list[Entry], frozenset[str]]:
    """All entries under the names of `read_others`, and the names of copies of tied tensors, which are not needed."""
    kept = kept_tensors(model)
    entries: list[Entry] = []
    copies: set[str] = set()
    for place, own in places.items():
        for entry in own:
            names = tuple(f"{place}/{name}" if place else name for name in entry.theirs)
            if entry.ours in kept:
                entries.append(replace(entry, theirs=names))
            else:
                copies.update(names)
    return entries, frozenset(copies)


def all_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters under all their names, also where they are tied, and the buffers that are saved."""
    return {**kept_tensors(model), **dict(model.named_parameters(remove_duplicate=False))}
