"""The model folder: config.json, weights and bertie.json under the names that Hugging Face expects.

`open_folder` gives the recipe and a model with its weights, and a report of what the file lacked or held in vain.
`write_folder` is its inverse. Tokenizer and sentence pooling have files of their own beside these.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertie.errors import FolderError
from bertie.models.layouts import LAYOUTS, HFLayout
from bertie.models.layouts.layout import Entry
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.models.weights import read_weights, write_weights

CARD = "bertie.json"


@dataclass(frozen=True)
class LoadReport:
    """What did not fit between a weight file and the model: names in the file's own spelling."""

    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    mis_shaped: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not (self.missing or self.unused or self.mis_shaped)

    def __str__(self) -> str:
        parts = [
            f"{len(names)} {what}: {_some(names)}"
            for what, names in (
                ("missing", self.missing),
                ("of another shape", self.mis_shaped),
                ("unused", self.unused),
            )
            if names
        ]
        return "; ".join(parts) or "every tensor was used"


@dataclass(frozen=True)
class Opened:
    model: Model
    report: LoadReport
    card: dict[str, Any]  # what bertie.json says beside the recipe; empty for foreign folders


def open_folder(folder: Path, recipe_type: type[Recipe] = Recipe) -> Opened:
    config = read_json(folder / "config.json")
    card = read_card(folder)
    tensors = read_weights(folder)
    layout = _layout(folder, config)
    if layout is not None:
        tensors = {layout.canonical(name): tensor for name, tensor in tensors.items()}
    if card:
        recipe = recipe_type.parse(card["recipe"], where=str(folder / CARD))
        layout = layout if layout and layout.config(recipe) else None
    elif layout is not None:
        recipe = _recipe_of(folder, layout, config, tensors)
    else:
        raise FolderError(f"has no {CARD} and no known architecture in config.json", where=str(folder))
    with torch.device("meta"):
        model = Model(recipe)
    if next(model.buffers(), None) is not None:
        model = Model.new(recipe)  # what a part computes when it is built is in no file
    entries = layout.entries(recipe) if layout else own_entries(model)
    report = _fill(model, entries, tensors, layout)
    if report.missing or report.mis_shaped:
        raise FolderError(f"the weights do not fit the model ({report})", where=str(folder))
    return Opened(model, report, card)


def write_folder(folder: Path, model: Model, card: dict[str, Any]) -> str | None:
    """Returns a sentence to tell the user where `transformers` will not be able to open the folder."""
    recipe, note = model.recipe, None
    layout, config = hf_layout(recipe)
    if layout is None:
        note = "transformers has no such model: the weights are kept under bertie's own names"
        config = {"model_type": "bertie", "architectures": [recipe.name]}
    entries = layout.entries(recipe) if layout else own_entries(model)
    kept = _kept(model)
    tensors = {}
    for entry in entries:
        for name, tensor in zip(entry.theirs, entry.split(kept[entry.ours]), strict=True):
            tensors[name] = tensor.detach().clone()
    if layout and not recipe.objectives:
        tensors = {name.removeprefix(layout.prefix): tensor for name, tensor in tensors.items()}
    folder.mkdir(parents=True, exist_ok=True)
    config_text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    (folder / "config.json").write_text(config_text, "utf-8")
    write_weights(folder, tensors)
    card = {**card, "recipe": json.loads(recipe.to_json()), "config_sha256": _sha256(config_text)}
    (folder / CARD).write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return note


def hf_layout(recipe: Recipe) -> tuple[HFLayout | None, dict[str, Any]]:
    """The architecture of `transformers` that expresses a recipe, with its config; None where there is none."""
    for layout in LAYOUTS.values():
        if config := layout.config(recipe):
            return layout, config
    return None, {}


def own_entries(model: Model) -> list[Entry]:
    return [Entry(name, (name,)) for name in _kept(model)]


def _kept(model: Model) -> dict[str, Tensor]:
    """Parameters, tied ones once, and those buffers that are to be saved."""
    names = set(model.state_dict())
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in names}
    return {**dict(model.named_parameters()), **buffers}


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise FolderError(f"has no {path.name}", where=str(path.parent), hint="is it a model folder?") from None
    except (ValueError, RecursionError) as error:
        raise FolderError(f"is not valid JSON ({error})", where=str(path)) from None
    if not isinstance(content, dict):
        raise FolderError("is not a JSON object", where=str(path))
    return content


def read_card(folder: Path) -> dict[str, Any]:
    """bertie.json, unless config.json was changed after it was written: then another program owns the folder now."""
    if not (folder / CARD).exists():
        return {}
    card = read_json(folder / CARD)
    if "recipe" not in card:
        raise FolderError("has no recipe", where=str(folder / CARD))
    unchanged = card.get("config_sha256") == _sha256((folder / "config.json").read_text("utf-8"))
    return card if unchanged else {}


def _layout(folder: Path, config: dict[str, Any]) -> HFLayout | None:
    kind = config.get("model_type", "bert" if "hidden_size" in config else None)  # the oldest folders do not say
    if kind == "bertie":
        return None
    if kind not in LAYOUTS:
        known = ", ".join(sorted(LAYOUTS))
        raise FolderError(f"the architecture {kind!r} is not known here", where=str(folder), hint=f"known: {known}")
    return LAYOUTS[kind]


def _recipe_of(folder: Path, layout: HFLayout, config: dict[str, Any], tensors: dict[str, Tensor]) -> Recipe:
    try:
        return layout.recipe(config, frozenset(tensors))
    except KeyError as error:
        raise FolderError(f"does not say {error}", where=str(folder / "config.json")) from None


def _fill(model: Model, entries: list[Entry], tensors: dict[str, Tensor], layout: HFLayout | None) -> LoadReport:
    """Give the model its tensors; tied parameters are one parameter and are filled once."""
    kept = _kept(model)
    missing, mis_shaped, state = [], [], {}
    used = {name for entry in entries for name in entry.theirs}
    for entry in entries:
        absent = [name for name in entry.theirs if name not in tensors]
        missing += absent
        if absent:
            continue
        try:
            joined = entry.join([tensors[name] for name in entry.theirs])
        except RuntimeError:
            joined = tensors[entry.theirs[0]]
        expected = kept[entry.ours].shape
        if joined.shape != expected:
            found = " + ".join(str(list(tensors[name].shape)) for name in entry.theirs)
            mis_shaped.append(f"{entry.theirs[0]} is {found}, the model needs {list(expected)}")
        state[kept[entry.ours]] = joined
    unused = [name for name in tensors if name not in used and not (layout and layout.is_ignored(name))]
    if not (missing or mis_shaped):
        _assign(model, state)
    return LoadReport(tuple(missing), tuple(sorted(unused)), tuple(mis_shaped))


def _assign(model: Model, state: dict[Tensor, Tensor]) -> None:
    real = {old: tensor.contiguous() for old, tensor in state.items()}
    weights = {old: torch.nn.Parameter(tensor) for old, tensor in real.items() if isinstance(old, torch.nn.Parameter)}
    for part in model.modules():
        for name, parameter in list(part._parameters.items()):
            if parameter is not None:
                part._parameters[name] = weights[parameter]
        for name, buffer in list(part._buffers.items()):
            if buffer is not None and buffer in real:
                part._buffers[name] = real[buffer]


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
