"""The model folder: config.json, weights and bertie.json under the names that Hugging Face expects.

`open_folder` returns a model with its recipe and weights, and a report of tensors that were missing or not used.
`write_folder` is its inverse. The tokenizer and sentence pooling have files of their own beside these.
"""

import hashlib
import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from bertie.disk import is_sealed
from bertie.errors import FolderError, InputError, SpecError
from bertie.json_files import LARGEST_VOCABULARY, read_object, read_regular, shown
from bertie.models.filling import FoundTensors, LoadReport, compare, fill
from bertie.models.folder.placement import HEADS, describe_apart, place_tensors, write_tensors
from bertie.models.folder.seal import FILES, RESTORE, check_folder
from bertie.models.folder.weights import read_file, read_weights
from bertie.models.layouts import LAYOUTS, HFLayout
from bertie.models.layouts.config_values import check_values
from bertie.models.layouts.names import Config
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.nn.stack import StackSpec
from bertie.spec import LARGEST, first_mistake

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
# Files of an older model that a new one must not take for its own. Nothing else is ever removed.
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
    """The weights do not fit the model; `report` names every tensor, the message only the first few."""

    def __init__(self, report: LoadReport, where: str):
        super().__init__(f"the weights do not fit the model ({report})", where=where)
        self.report = report


@dataclass(frozen=True)
class Opened:
    model: Model
    report: LoadReport
    card: dict[str, Any]  # bertie.json; empty for folders that another program wrote


def open_folder(folder: Path, recipe_type: type[Recipe] = Recipe) -> Opened:
    """Opens a folder that bertie or `transformers` wrote. In ours, bertie.json has the recipe; in others it is read
    from the config and from the names of the tensors."""
    config, card = check_values(read_object(folder / "config.json"), str(folder / "config.json")), read_card(folder)
    kind = config.get("model_type", "bert" if "hidden_size" in config else None)  # the oldest folders have no kind
    layout = LAYOUTS.get(kind) if isinstance(kind, str) else None
    if layout is None and kind != OWN:
        hint = f"known: {', '.join(sorted(LAYOUTS))}"
        raise FolderError(f"the architecture {kind!r} is not known here", where=str(folder), hint=hint)
    found = FoundTensors()
    found.add(read_weights(folder), layout)
    if card:
        recipe = recipe_type.parse(card["recipe"], where=str(folder / CARD))
    elif layout is not None:
        recipe = _read_recipe(folder, layout, config, found.tensors)
    else:
        why = "config.json has changed since" if (folder / CARD).exists() else "it is missing"
        raise FolderError(f"cannot be opened without {CARD}, and {why}", where=str(folder))
    stack, num_tensors = recipe.encoder.stack, len(found.tensors)
    if (
        isinstance(stack, StackSpec) and not stack.shared and stack.depth > num_tensors
    ):  # each layer takes time to build
        what = f"should have {stack.depth:,} layers, but its weights are {num_tensors:,} tensors"
        raise FolderError(what, where=str(folder))
    try:
        with torch.device("meta"):
            model = Model(recipe)
    except SpecError as error:
        raise FolderError(f"has a value that cannot work ({error.what})", where=str(folder)) from None
    apart = read_file(folder / HEADS) if (folder / HEADS).exists() else {}
    found.add(apart, None, HEADS)
    known = layout.named_part(recipe, config, apart) if layout else recipe
    entries, copies = place_tensors(model, layout, known)
    places = [entry.theirs[0].rpartition("/")[0] for entry in entries]
    if HEADS in places and not apart:
        raise FolderError(f"has no {HEADS}, which its recipe needs", where=str(folder))
    for place in set(places) - {"", HEADS}:
        found.add(read_weights(folder / place), layout, place)
    ignored = [name for copy in copies for name in copy.theirs]
    for pattern in layout.ignored if layout else ():
        ignored += [name for name in found.tensors if re.fullmatch(pattern, name.rpartition("/")[2])]
    report = compare(model, entries, found, ignored)
    if report.missing or report.mis_shaped:
        raise WeightsError(report, where=str(folder))
    if next(model.buffers(), None) is not None:
        model = Model.new(recipe)  # what a part computes when it is built is in no file
    fill(model, entries, found, str(folder))
    if left_out := [name for name in report.unused if re.search(r"layers?\.\d+\.|attentions\.\d+\.", name)]:
        what = f"{len(left_out)} tensors of further layers are not used, first {left_out[0]}"
        warnings.warn(f"{folder}: {what}", stacklevel=2)
    return Opened(model, report, card)


def write_folder(folder: Path, model: Model, card: dict[str, Any]) -> str | None:
    """Writes config, weights and bertie.json. Returns a warning where `transformers` cannot open all of it."""
    recipe, note = model.recipe, None
    layout, config, known = hf_layout(recipe)
    if layout is None:
        note = "transformers has no such model: the weights are kept under bertie's own names"
        config = {"model_type": OWN, "architectures": [recipe.name]}
    entries, copies = place_tensors(model, layout, known)
    if apart := describe_apart(entries):
        note = f"transformers opens this model without its {apart}, which is saved separately in {HEADS}"
    recipe.check_saves()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderError(f"cannot be created ({error.strerror})", where=str(folder)) from None
    config_text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    (folder / "config.json").write_text(config_text, "utf-8")
    write_tensors(folder, model, entries, copies, prefix=layout.prefix if layout and not known.objectives else "")
    for name, companion in (layout.companions(known) if layout else {}).items():
        assert layout is not None
        (folder / name / "config.json").write_text(json.dumps(layout.config(companion), indent=2) + "\n", "utf-8")
    (folder / CARD).write_text(card_text(card, recipe, config_text), "utf-8")
    return note


def card_text(card: Mapping[str, Any], recipe: Recipe, config: str) -> str:
    """The content of bertie.json beside a config of this text."""
    sha256 = hashlib.sha256(config.encode()).hexdigest()
    whole = {**card, "recipe": json.loads(recipe.to_json()), "config_sha256": sha256}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def hf_layout(recipe: Recipe) -> tuple[HFLayout | None, dict[str, Any], Recipe]:
    """Finds the architecture of `transformers` that expresses a recipe. Returns its layout, its config and the part of
    the recipe that it has names for; no layout where there is none.

    Of several it is the one with names for most heads; of these the recipe's namesake, or else the first.
    """
    best: tuple[HFLayout | None, dict[str, Any], Recipe] = (None, {}, recipe)
    for kind in sorted(LAYOUTS, key=lambda kind: kind != recipe.name):
        expressed = LAYOUTS[kind].express(recipe)
        if expressed is None:
            continue
        known, config = expressed
        if best[0] is None or len(known.objectives) > len(best[2].objectives):
            best = LAYOUTS[kind], config, known
        if len(known.objectives) == len(recipe.objectives):
            break
    return best


def take_place(made: Path, folder: Path) -> None:
    """Moves the files of a complete new folder into a folder, and removes those of an older model there.

    config.json is removed first and moved last: without it a folder is no model, so a kill leaves no mixture of two.
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
    """Reads bertie.json; empty where the config was changed later, because then another program owns the folder."""
    if not (folder / CARD).exists():
        return {}
    path = folder / CARD
    card = read_object(path, LARGEST_VOCABULARY)
    if is_sealed(read_regular(path, LARGEST_VOCABULARY)) is False:
        raise FolderError("was changed after it was written", where=str(path), hint=RESTORE)
    if "recipe" not in card:
        raise FolderError("has no recipe", where=str(path))
    length = card.get("length")
    if length is not None and (type(length) is not int or not 1 <= length <= LARGEST):
        raise FolderError(f"has the length {shown(length)}, which should be a number of tokens", where=str(path))
    sha256 = hashlib.sha256(read_regular(folder / config)).hexdigest()
    if card.get("config_sha256") != sha256:
        warnings.warn(f"{folder / config}: changed since bertie wrote it, so {CARD} is ignored", stacklevel=3)
        return {}
    check_folder(folder, card)
    return {name: value for name, value in card.items() if name not in ("sha256", FILES)}


def _read_recipe(folder: Path, layout: HFLayout, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Recipe:
    """Reads the recipe of a foreign folder. Where its head cannot be read, it is that of the encoder alone."""
    where, names = str(folder / "config.json"), frozenset(tensors)
    settled, warning = layout.tasks.settle(config, {name: tensor.shape for name, tensor in tensors.items()})
    try:
        recipe = _explained(layout, settled, names, where)
    except FolderError as error:
        body = frozenset(name for name in names if name.startswith(layout.prefix))
        try:
            recipe = _explained(layout, {**config, "architectures": []}, body, where)
        except FolderError:
            raise error from None
        warning = f"the model is opened without its head: {error.what}"
    if warning:
        warnings.warn(f"{folder}: {warning}", stacklevel=2)
    return recipe


def _explained(layout: HFLayout, config: Config, names: frozenset[str], where: str) -> Recipe:
    try:
        return layout.read(config, names)
    except FolderError as error:
        raise FolderError(error.what, where=error.where or str(Path(where).parent), hint=error.hint) from None
    except KeyError as error:
        raise FolderError(f"has no {error}", where=where) from None
    except TypeError as error:
        raise FolderError(f"has a value of the wrong type ({error})", where=where) from None
    except ValidationError as error:
        raise FolderError(f"has a value that cannot work ({first_mistake(error)})", where=where) from None
    except (SpecError, InputError) as error:
        raise FolderError(f"has a value that cannot work ({error.what})", where=where) from None
    except (AttributeError, ValueError, ArithmeticError) as error:
        raise FolderError(f"has a value that cannot work ({error})", where=where) from None
