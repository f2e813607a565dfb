"""The model folder: config.json, weights and bertie.json under the names that Hugging Face expects.

`open_folder` gives the recipe and a model with its weights, and a report of what the file lacked or held in vain.
`write_folder` is its inverse. Tokenizer and sentence pooling have files of their own beside these.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from bertie.errors import FolderError, SpecError
from bertie.models.filling import LoadReport, fill
from bertie.models.layouts import LAYOUTS, HFLayout
from bertie.models.model import Model
from bertie.models.placement import HEADS, entries_to_fill, placement, read_main, read_others, told_apart, write_tensors
from bertie.models.recipe import Recipe
from bertie.spec import first_mistake

CARD, OWN = "bertie.json", "bertie"  # OWN: the model_type of what `transformers` does not have
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
)
# What a model leaves in a folder, and the next model must not take for its own. Nothing else is ever removed.
MODEL_FILES = (
    "config.json",
    CARD,
    "model.safetensors",
    "model.safetensors.index.json",
    "model-*-of-*.safetensors",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "pytorch_model-*-of-*.bin",
    HEADS,
    "generator/config.json",
    "generator/model.safetensors",
    "adapter/adapter_config.json",
    "adapter/adapter_model.safetensors",
    f"adapter/{CARD}",
    f"adapter/{HEADS}",
    *(f"{inner}/{name}" for inner in ("generator", "adapter") for name in TOKENIZER_FILES),
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "added_tokens.json",
    *TOKENIZER_FILES,
)


class WeightsError(FolderError):
    """The weights do not fit the model; `report` names every tensor, the sentence only the first."""

    def __init__(self, report: LoadReport, where: str):
        super().__init__(f"the weights do not fit the model ({report})", where=where)
        self.report = report


@dataclass(frozen=True)
class Opened:
    model: Model
    report: LoadReport
    card: dict[str, Any]  # what bertie.json says beside the recipe; empty for foreign folders


def open_folder(folder: Path, recipe_type: type[Recipe] = Recipe) -> Opened:
    config = read_json(folder / "config.json")
    card = read_card(folder)
    layout = _layout(folder, config)
    found = read_main(folder, layout)
    if card:
        recipe = recipe_type.parse(card["recipe"], where=str(folder / CARD))
        layout = layout if layout and layout.config(layout.known(recipe)) else None
    elif layout is not None:
        recipe = _recipe_of(folder, layout, config, frozenset(found.tensors))
    else:
        why = "config.json was changed since" if (folder / CARD).exists() else "it is missing"
        raise FolderError(f"cannot be opened without {CARD}, and {why}", where=str(folder))
    with torch.device("meta"):
        model = Model(recipe)
    if next(model.buffers(), None) is not None:
        model = Model.new(recipe)  # what a part computes when it is built is in no file
    places = placement(model, layout)
    entries, copies = entries_to_fill(model, places)
    found = read_others(folder, found, layout, places)
    report = fill(model, entries, found, lambda name: name in copies or _is_ignored(name, layout))
    if report.missing or report.mis_shaped:
        raise WeightsError(report, where=str(folder))
    return Opened(model, report, card)


def write_folder(folder: Path, model: Model, card: dict[str, Any]) -> str | None:
    """Returns a sentence to tell the user where `transformers` will not be able to open the folder."""
    recipe, note = model.recipe, None
    layout, config = hf_layout(recipe)
    if layout is None:
        note = "transformers has no such model: the weights are kept under bertie's own names"
        config = {"model_type": OWN, "architectures": [recipe.name]}
    places = placement(model, layout)
    if HEADS in places:
        note = f"transformers knows this model without its {told_apart(places)}: that is kept apart, in {HEADS}"
    if type(recipe).from_json(recipe.to_json()) != recipe:
        raise SpecError("the recipe's type does not describe all of its parts", hint="subclass Recipe with your types")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderError(f"cannot be made a folder ({error.strerror})", where=str(folder)) from None
    config_text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    (folder / "config.json").write_text(config_text, "utf-8")
    write_tensors(folder, model, layout, places)
    for name, companion in (layout.companions(layout.known(recipe)) if layout else {}).items():
        assert layout is not None
        (folder / name / "config.json").write_text(
            json.dumps(layout.config(companion.recipe), indent=2) + "\n", "utf-8"
        )
    (folder / CARD).write_text(card_text(card, recipe, config_text), "utf-8")
    return note


def card_text(card: Mapping[str, Any], recipe: Recipe, config: str) -> str:
    """What bertie.json says beside a config of this text."""
    whole = {**card, "recipe": json.loads(recipe.to_json()), "config_sha256": _sha256(config)}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def hf_layout(recipe: Recipe) -> tuple[HFLayout | None, dict[str, Any]]:
    """The architecture of `transformers` that expresses a recipe, with its config; None where there is none.

    Of several it is the one that has a name for most heads; of these the recipe's namesake, else the first.
    """
    known = {kind: layout.known(recipe) for kind, layout in LAYOUTS.items()}
    configs = {kind: LAYOUTS[kind].config(one) for kind, one in known.items()}
    able = {kind: config for kind, config in configs.items() if config}
    if not able:
        return None, {}
    best = max(able, key=lambda kind: (len(known[kind].objectives), kind == recipe.name))
    return LAYOUTS[best], able[best]


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


def take_place(made: Path, folder: Path) -> None:
    """Move a whole new folder's files into a folder, and remove what an older model left there.

    config.json goes first and comes last: without it a folder is no model, so that a kill leaves no mixture of two.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in MODEL_FILES:
        for old in folder.glob(pattern):
            if pattern == "config.json" or not (made / old.relative_to(folder)).exists():
                old.unlink()
    for path in sorted(made.rglob("*"), key=lambda path: path == made / "config.json"):
        target = folder / path.relative_to(made)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            path.replace(target)


def read_card(folder: Path, config: str = "config.json") -> dict[str, Any]:
    """bertie.json, unless the config was changed after it was written: then another program owns the folder now."""
    if not (folder / CARD).exists():
        return {}
    card = read_json(folder / CARD)
    if "recipe" not in card:
        raise FolderError("has no recipe", where=str(folder / CARD))
    unchanged = card.get("config_sha256") == _sha256((folder / config).read_text("utf-8"))
    return card if unchanged else {}


def _layout(folder: Path, config: dict[str, Any]) -> HFLayout | None:
    kind = config.get("model_type", "bert" if "hidden_size" in config else None)  # the oldest folders do not say
    if kind == OWN:
        return None
    if not isinstance(kind, str) or kind not in LAYOUTS:
        known = ", ".join(sorted(LAYOUTS))
        raise FolderError(f"the architecture {kind!r} is not known here", where=str(folder), hint=f"known: {known}")
    return LAYOUTS[kind]


def _is_ignored(name: str, layout: HFLayout | None) -> bool:
    return layout is not None and layout.is_ignored(name.rpartition("/")[2])


def _recipe_of(folder: Path, layout: HFLayout, config: dict[str, Any], names: frozenset[str]) -> Recipe:
    where = str(folder / "config.json")
    try:
        return layout.recipe(config, names)
    except KeyError as error:
        raise FolderError(f"does not say {error}", where=where) from None
    except TypeError as error:
        raise FolderError(f"has a value of a kind that cannot work ({error})", where=where) from None
    except ValidationError as error:
        raise FolderError(f"has a value that cannot work ({first_mistake(error)})", where=where) from None
    except SpecError as error:
        raise FolderError(f"has a value that cannot work ({error.what})", where=where) from None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
