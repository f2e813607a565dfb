"""The adapter folder, as `peft` has it: adapter_config.json and adapter_model.safetensors, and bertie.json beside them.

Writes the adapters of a model, and opens a folder as the base that it names with the updates merged into its weights.
Modules that were trained as a whole, heads and a pooler, are `modules_to_save`. Where an adapted layer is not a linear
layer in `transformers`, all names are bertie's own, with a warning.
"""

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertie.errors import FolderError, SpecError
from bertie.json_files import read_object, shown
from bertie.models.filling import kept_tensors
from bertie.models.folder.folder import CARD, OWN, Opened, card_text, hf_layout, open_folder, read_card
from bertie.models.folder.folder_finding import find_folder
from bertie.models.folder.placement import HEADS, describe_apart, place_tensors
from bertie.models.folder.weights import check_finite, read_file, write_weights
from bertie.models.layouts.hf_labels import ANSWERS, ROWS, TOKENS, role_of, task_of
from bertie.models.layouts.hf_layout import HFLayout
from bertie.models.layouts.names import Entry
from bertie.models.layouts.task_heads import task_in
from bertie.models.model import Model
from bertie.models.recipe import Recipe
from bertie.models.task_recipe import task_recipe
from bertie.models.variant import with_recipe
from bertie.nn.heads import SequenceHeadSpec
from bertie.nn.low_rank import Adapted
from bertie.spec import LARGEST
from bertie.tasks.task import Task

ADAPTER = "adapter"  # the folder inside that of the merged model
CONFIG, WEIGHTS, LEGACY = "adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"
BASE = "base_model_name_or_path"
BEGIN, DOWN, UP = "base_model.model.", ".lora_A.weight", ".lora_B.weight"  # parts of names
TASK_TYPES = {ROWS: "SEQ_CLS", TOKENS: "TOKEN_CLS", ANSWERS: "QUESTION_ANS"}
# Settings under which an update is something else than a product of two matrices, or is of something else than one.
STRANGE = (
    *("use_dora", "use_qalora", "use_bdlora", "lora_bias", "fan_in_fan_out", "layer_replication"),
    *("target_parameters", "trainable_token_indices", "alora_invocation_tokens", "arrow_config"),
    *("kasa_config", "monteclora_config"),
)
MOST_REPEATS, LONGEST_NAME = 2, 300  # of a pattern of layers, and of a layer's name
PLAIN_BEGINNINGS = (True, False, "gaussian", "orthogonal", "eva")  # others change the base's own weights


# --- writing


def write_adapter(folder: Path, model: Model, card: Mapping[str, Any]) -> list[str]:
    """Writes the folder. `card` is the content of bertie.json; its `base` is where the base is found. Returns warnings
    of what peft cannot express."""
    recipe, notes = model.recipe, []
    adapted = {name: part for name, part in model.named_modules() if isinstance(part, Adapted)}
    layout, _, known = hf_layout(recipe)
    layout = None if _is_of_our_own(card.get("base")) else layout
    entries = entries_by_name(recipe, layout, known)
    if layout is None or not all(_has_layer(entries, name, part) for name, part in adapted.items()):
        notes.append("peft has no names for these adapters: they are kept under bertie's own")
        layout, entries = None, entries_by_name(recipe, None, recipe)
    elif apart_words := describe_apart(entries.values()):
        notes.append(f"peft opens this adapter without its {apart_words}, which is saved separately in {HEADS}")
    entries = {ours: entry for ours, entry in entries.items() if "/" not in entry.theirs[0]}
    bare = layout.prefix if layout and not known.objectives else ""
    updates = {
        layer_of(name).removeprefix(bare): found
        for ours, part in adapted.items()
        for name, found in _named_factors(entries[f"{ours}.weight"], part)
    }
    modules = {layer_of(name).removeprefix(bare) for entry in entries.values() for name in entry.theirs}
    saved, apart = learned_whole(model, entries)
    saved = {name.removeprefix(bare): tensor for name, tensor in saved.items()}
    config = {
        **config_of(adapted, {name: len(down) for name, (down, _) in updates.items()}, modules),
        BASE: card.get("base"),
        "task_type": TASK_TYPES.get(role_of(task) or "") if layout and (task := task_in(known)) else None,
        "modules_to_save": sorted({_saved_module(name, layout) for name in saved}) or None,
    }
    tensors = {f"{BEGIN}{name}": tensor for name, tensor in saved.items()}
    for name, (down, up) in updates.items():
        tensors |= {f"{BEGIN}{name}{DOWN}": down, f"{BEGIN}{name}{UP}": up}
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(folder, tensors, WEIGHTS)
    if apart:
        write_weights(folder, apart, HEADS)
    text = json.dumps(config, indent=2) + "\n"
    (folder / CARD).write_text(card_text({**card, "own_names": layout is None}, recipe, text), "utf-8")
    (folder / CONFIG).write_text(text, "utf-8")
    return notes


def config_of(adapted: Mapping[str, Adapted], ranks: Mapping[str, int], modules: Collection[str]) -> dict[str, Any]:
    """`ranks` are those of the updates by layer, `modules` are all layers."""
    spec = next(iter(adapted.values())).spec
    targets = short_names(ranks, modules)
    # Where they have one layer for several of ours, the ranks of these add up.
    patterns = {targets[name]: rank for name, rank in ranks.items() if rank != spec.rank}
    return {
        "peft_type": "LORA",
        "inference_mode": True,
        "r": spec.rank,
        "lora_alpha": plain_number(spec.scale * spec.rank),
        "lora_dropout": spec.dropout,
        "target_modules": sorted(set(targets.values())),
        "rank_pattern": patterns,
        "alpha_pattern": {name: plain_number(spec.scale * rank) for name, rank in patterns.items()},
        "bias": "none",
        "fan_in_fan_out": False,
        "init_lora_weights": True,
        "use_rslora": False,
        "use_dora": False,
    }


def learned_whole(model: Model, entries: Mapping[str, Entry]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """What was trained beside the updates: under their names, and under ours where there are none."""
    of_updates = {one for part in model.modules() if isinstance(part, Adapted) for one in part.updates.parameters()}
    saved: dict[str, Tensor] = {}
    apart: dict[str, Tensor] = {}
    for ours, parameter in model.named_parameters():
        if not parameter.requires_grad or parameter in of_updates:
            continue
        if (entry := entries.get(ours)) is None:
            apart[ours] = parameter
        else:
            saved |= {name: part.clone() for name, part in zip(entry.theirs, entry.split(parameter), strict=True)}
    return saved, apart


def short_names(wanted: Collection[str], modules: Collection[str]) -> dict[str, str]:
    """Each layer by the end of its name after the number, or by its whole name if others end like that."""
    ends = {name: re.split(r"\.\d+\.", name)[-1] for name in wanted}
    others = set(modules) - set(wanted)
    doubtful = any(name.endswith(f".{end}") for name in others for end in set(ends.values()))
    return {name: name for name in wanted} if doubtful else ends


def entries_by_name(recipe: Recipe, layout: HFLayout | None, known: Recipe) -> dict[str, Entry]:
    with torch.device("meta"):
        return {entry.ours: entry for entry in place_tensors(Model(recipe), layout, known)[0]}


def layer_of(name: str) -> str:
    """A tensor's name without its last word."""
    return name.rpartition(".")[0]


def plain_number(value: float) -> float | int:
    return round(value) if math.isclose(value, round(value)) else value


def _is_of_our_own(base: str | None) -> bool:
    """Whether only bertie can open the base, such as one with a top, even if others know the adapted model."""
    with suppress(FolderError):  # only others may find the base
        return base is not None and read_object(find_folder(base) / "config.json").get("model_type") == OWN
    return False


def _has_layer(entries: Mapping[str, Entry], name: str, part: Adapted) -> bool:
    """Whether the layer is there as one linear layer, or as one for each of its parts."""
    entry = entries.get(f"{name}.weight")
    if entry is None or "/" in entry.theirs[0]:
        return False
    return entry.shape is None and len(entry.theirs) in (1, len(part.parts))


def _named_factors(entry: Entry, part: Adapted) -> list[tuple[str, tuple[Tensor, Tensor]]]:
    found = zip(entry.theirs, part.factors(len(entry.theirs)), strict=True)
    return [(name, factors) for name, factors in found if factors is not None]


def _saved_module(name: str, layout: HFLayout | None) -> str:
    """The largest module that is not the encoder: a whole head, a whole pooler."""
    return layer_of(name) if layout is None else name.removeprefix(layout.prefix).split(".")[0]


# --- reading


def is_adapter(folder: Path) -> bool:
    return (folder / CONFIG).exists() and not (folder / "config.json").exists()


def refuse_adapter(base: str) -> None:
    """Refuses a base that is itself an adapter. A base that only others find is accepted."""
    try:
        folder = find_folder(base)
    except FolderError:
        return
    if is_adapter(folder):
        whole = folder.parent if (folder.parent / "config.json").exists() else None
        hint = f"give the merged folder, {whole}" if whole else "merge it: bertie.load(its folder).save(another folder)"
        raise SpecError("is itself an adapter, and adapters cannot be stacked", where=str(folder), hint=hint)


def base_of(folder: Path) -> Path:
    """The folder of the model that it adapts."""
    name, where = read_object(folder / CONFIG).get(BASE), str(folder / CONFIG)
    hint = f"set {BASE} to the folder of the model that was adapted"
    if not isinstance(name, str) or not name:
        raise FolderError("does not name the model that it adapts", where=where, hint=hint)
    try:
        return find_folder(name)
    except FolderError as error:
        raise FolderError(f"its base {name!r} cannot be opened: {error.what}", where=where, hint=hint) from None


def open_adapter(folder: Path, recipe_type: type[Recipe] = Recipe) -> Opened:
    """Opens the base, merges the updates into its weights, and adds the heads that were saved with them."""
    config, card = read_object(folder / CONFIG), read_card(folder, CONFIG)
    _refuse_strange(config, str(folder / CONFIG))
    base = open_folder(base_of(folder), recipe_type)
    layout, _, _ = (None, {}, None) if card.get("own_names") else hf_layout(base.model.recipe)
    if layout is None and not card.get("own_names"):
        raise FolderError("adapts a model of transformers, but its base is not one", where=str(folder))
    file = folder / (WEIGHTS if (folder / WEIGHTS).exists() or not (folder / LEGACY).exists() else LEGACY)
    most = max((tensor.numel() for tensor in kept_tensors(base.model).values()), default=0)
    tensors = _merged_updates(read_file(file), config, layout, str(file), most)
    if card:
        recipe = recipe_type.parse(card["recipe"], where=str(folder / CARD))
    else:
        recipe = describe_recipe(base.model.recipe, config, tensors)
    before = {name: tensor.shape for name, tensor in kept_tensors(base.model).items()}
    model = with_recipe(base.model, recipe, seed=0)
    own, _, known = hf_layout(recipe) if layout else (None, {}, recipe)
    entries = entries_by_name(recipe, own, known)
    apart = read_file(folder / HEADS) if (folder / HEADS).exists() else {}
    filled = _fill(model, entries.values(), tensors, str(file)) | _fill_own(model, apart, str(folder / HEADS))
    for name, tensor in kept_tensors(model).items():
        if before.get(name) != tensor.shape and name not in filled:
            raise FolderError(f"has no tensor for {name}, which the base does not have", where=str(file))
    return Opened(model, base.report, card)


def describe_recipe(base: Recipe, config: Mapping[str, Any], tensors: Mapping[tuple[str, bool], Tensor]) -> Recipe:
    """The recipe of an adapter that others made. Its type names the task, its head has the number of labels."""
    role = next((role for role, theirs in TASK_TYPES.items() if theirs == config.get("task_type")), None)
    draft = role and task_of(role, {}, SequenceHeadSpec())
    if not isinstance(draft, Task) or role is None:
        return base
    recipe = task_recipe(base, draft)
    layout, _, known = hf_layout(recipe)
    entry = entries_by_name(recipe, layout, known).get(f"heads.{draft.name}.output.weight")
    output = entry.theirs[0] if entry else ""
    if (output, False) not in tensors:
        return base
    num_labels = len(tensors[output, False])
    own = task_in(base)
    if own is not None and (head := own.hf_head()) and head.role == role and len(head.labels) == num_labels:
        return base
    task = task_of(role, {"num_labels": num_labels}, SequenceHeadSpec())
    return task_recipe(base, task) if isinstance(task, Task) else base


def _merged_updates(
    tensors: Mapping[str, Tensor], config: Mapping[str, Any], layout: HFLayout | None, where: str, most: int
) -> dict[tuple[str, bool], Tensor]:
    """Tensors by canonical name and by whether they are added to the base's tensor or replace it. `most` is how many
    numbers the base's largest has: two small factors may make one of any size."""
    found: dict[tuple[str, bool], Tensor] = {}
    for name, tensor in tensors.items():
        spelled = name.removeprefix(BEGIN)
        if spelled.endswith(UP):
            continue
        added = spelled.endswith(DOWN)
        if added:
            layer = spelled.removesuffix(DOWN)
            up = tensors.get(f"{BEGIN}{layer}{UP}")
            if up is None or up.ndim != 2 or tensor.ndim != 2 or up.shape[1] != tensor.shape[0] or not len(tensor):
                raise FolderError(f"has an A of {layer} without its B", where=where)
            if len(up) * tensor.shape[1] > most:
                what = f"adapts {layer} by {[len(up), tensor.shape[1]]} numbers, more than any layer of the base has"
                raise FolderError(what, where=where)
            spelled, tensor = f"{layer}.weight", scale_of(layer, len(tensor), config, where) * (up @ tensor)
        found[layout.canonical(spelled) if layout else spelled, added] = tensor
    return found


def scale_of(layer: str, rank: int, config: Mapping[str, Any], where: str = "") -> float:
    patterns = config.get("alpha_pattern") or {}
    if not isinstance(patterns, dict):
        raise FolderError(f"has the alpha_pattern {shown(patterns)}, which should be an object", where=where)
    own = (alpha for pattern, alpha in patterns.items() if _matches(pattern, layer, where))
    alpha = next(own, config.get("lora_alpha", 8))
    if type(alpha) not in (int, float) or not -LARGEST < alpha < LARGEST:
        raise FolderError(f"has the alpha {shown(alpha)}, which should be a finite number", where=where)
    return float(alpha / (math.sqrt(rank) if config.get("use_rslora") else rank))


def _matches(pattern: str, layer: str, where: str) -> bool:
    """Whether a pattern of peft means the layer. Patterns with many repetitions could take forever."""
    repeats = re.findall(r"[*+?{]", pattern)
    if len(repeats) > MOST_REPEATS or re.search(r"\)[*+?{]", pattern) or len(layer) > LONGEST_NAME:
        raise FolderError(f"has the pattern {shown(pattern)}, which is too complicated", where=where)
    try:
        return re.match(rf"(.*\.)?({pattern})$", layer) is not None
    except (re.error, OverflowError, RecursionError) as error:
        raise FolderError(f"has the pattern {shown(pattern)}, which is not valid ({error})", where=where) from None


def _fill(model: Model, entries: Iterable[Entry], tensors: Mapping[tuple[str, bool], Tensor], where: str) -> set[str]:
    """Puts tensors into the model. Returns our names of those that got a value."""
    kept, filled = kept_tensors(model), set()
    parts = {name: (entry, number) for entry in entries for number, name in enumerate(entry.theirs)}
    with torch.no_grad():
        for (name, added), tensor in tensors.items():
            entry, number = parts.get(name, (None, 0))
            if entry is None or entry.shape is not None or entry.ours not in kept:
                raise FolderError(f"adapts {name}, which the base does not have", where=where)
            own = kept[entry.ours].chunk(len(entry.theirs))[number]
            if own.shape != tensor.shape:
                raise FolderError(f"{name} is {list(tensor.shape)}, the base needs {list(own.shape)}", where=where)
            check_finite(name, tensor, where)
            own.add_(tensor) if added else own.copy_(tensor)
            filled.add(entry.ours)
    return filled


def _fill_own(model: Model, tensors: Mapping[str, Tensor], where: str) -> set[str]:
    entries = [Entry(name, (name,)) for name in kept_tensors(model)]
    return _fill(model, entries, {(name, False): tensor for name, tensor in tensors.items()}, where)


def _refuse_strange(config: Mapping[str, Any], where: str) -> None:
    if (kind := config.get("peft_type")) != "LORA":
        raise FolderError(f"is an adapter of type {shown(kind)}; only LORA can be read", where=where)
    strange = [name for name in STRANGE if config.get(name)]
    strange += ["bias"] if config.get("bias", "none") != "none" else []
    strange += ["init_lora_weights"] if config.get("init_lora_weights", True) not in PLAIN_BEGINNINGS else []
    if strange:
        raise FolderError(f"sets {strange[0]} to {shown(config[strange[0]])}, which is not supported here", where=where)
