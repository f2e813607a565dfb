"""Reads and writes what `sentence-transformers` keeps beside a model: modules.json, the pooling, a dense layer, the
normalization, the length limit. A model that was trained to compare vectors has such settings, too."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertie.errors import FolderError
from bertie.json_files import read_json, read_object, shown
from bertie.models.folder.weights import SINGLE, check_finite, read_weights, write_weights
from bertie.models.model import Model
from bertie.nn.pooling import Activation, Pooling, Projection, TokenPooling
from bertie.spec import LARGEST
from bertie.tasks.task import Task

POOLING_MODES: dict[str, TokenPooling] = {"cls": "first", "mean": "mean", "max": "max"}
MODE_FLAGS: dict[TokenPooling, str] = {
    "first": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
}
VECTOR = "sentence_embedding"
MODULES = "modules.json"
LIMITS, PROMPTS = "sentence_bert_config.json", "config_sentence_transformers.json"
KNOWN_MODULES = ("Transformer", "Pooling", "Dense", "Normalize")  # and in this order
ACTIVATIONS: dict[str, Activation] = {  # the classes of torch, by the last part of their names
    "Identity": "identity",
    "Tanh": "tanh",
}
CLASSES: dict[Activation, str] = {
    "identity": "torch.nn.modules.linear.Identity",
    "tanh": "torch.nn.modules.activation.Tanh",
}


@dataclass(frozen=True)
class SentenceSettings:
    pooling: Pooling
    max_length: int | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    projection: Projection | None = None  # of pooled vectors, before normalization

    @property
    def prompt(self) -> str:
        """The text that is put before every input."""
        return self.prompts[self.default_prompt] if self.default_prompt else ""


def learned_settings(model: Model, max_length: int | None) -> SentenceSettings | None:
    """Those of a model that was trained to compare vectors; None for others."""
    for task in model.recipe.objectives:
        if isinstance(task, Task) and task.vector_pooling is not None:
            pooling = Pooling(tokens=task.vector_pooling, normalize=True)
            return SentenceSettings(pooling, max_length, projection=task.projection(model.heads[task.name]))
    return None


def inherit_pooling(task: Task, settings: SentenceSettings, width: int) -> Task:
    """A task that learns vectors and leaves its pooling open takes over that of the base model, and the dense layer
    behind it, where vectors of `width` fit that."""
    return task.with_pooling(settings.pooling.tokens, settings.projection, width)


def load_dense(model: Model, settings: SentenceSettings) -> None:
    """Copies the base model's dense layer into the heads that have such a layer."""
    for task in model.recipe.objectives:
        if isinstance(task, Task) and settings.projection is not None:
            task.load_projection(model.heads[task.name], settings.projection)


def dropped_settings(task: Task, settings: SentenceSettings) -> list[str]:
    """Which parts of the base model the vectors are learned without, in a sentence."""
    if task.vector_pooling is None:
        return []
    lacks_dense = settings.projection is not None and not task.has_dense
    parts = [*["dense layer"] * lacks_dense, *["prompts"] * any(settings.prompts.values())]
    return [f"vectors are learned without the {' and the '.join(parts)} of the folder"] if parts else []


def read_sentence_settings(folder: Path) -> SentenceSettings | None:
    """Reads the settings of a folder; None where it is a plain model."""
    if not os.path.lexists(folder / MODULES):
        return None
    paths = _modules(folder / MODULES)
    if unknown := [kind for kind in paths if kind not in KNOWN_MODULES]:
        raise FolderError(
            f"modules.json has the module {unknown[0]}, which is not supported here",
            where=str(folder),
            hint=f"supported are {', '.join(KNOWN_MODULES)}",
        )
    if list(paths) != [kind for kind in KNOWN_MODULES if kind in paths]:
        hint = f"supported is {', '.join(KNOWN_MODULES)}"
        raise FolderError(f"modules.json has the order {', '.join(paths)}", where=str(folder), hint=hint)
    pooling = Pooling(tokens="mean")
    if "Pooling" in paths:
        pooling = _pooling(folder / paths["Pooling"] / "config.json")
    prompts, default = _prompts(folder / PROMPTS)
    projection = _projection(folder / paths["Dense"]) if "Dense" in paths else None
    return SentenceSettings(
        pooling.replace(normalize="Normalize" in paths), _limit(folder / LIMITS), prompts, default, projection
    )


def write_sentence_settings(folder: Path, settings: SentenceSettings, width: int) -> str | None:
    """Writes the settings; where `sentence-transformers` cannot express the pooling, returns a warning instead."""
    pooling = settings.pooling
    if pooling.needs_layers:
        (folder / MODULES).unlink(missing_ok=True)
        return f"sentence-transformers cannot pool {pooling.layers} layers: its files are not written"
    kinds = [
        "Transformer",
        "Pooling",
        *["Dense"] * (settings.projection is not None),
        *["Normalize"] * pooling.normalize,
    ]
    paths = {kind: f"{index}_{kind}" if index else "" for index, kind in enumerate(kinds)}
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (kind, path) in enumerate(paths.items())
    ]
    flags = {flag: tokens == pooling.tokens for tokens, flag in MODE_FLAGS.items()}
    files: dict[str, Any] = {
        MODULES: modules,
        "1_Pooling/config.json": {"word_embedding_dimension": width, **flags},
        LIMITS: {"max_seq_length": settings.max_length, "do_lower_case": False},
    }
    if settings.prompts:
        files[PROMPTS] = {"prompts": dict(settings.prompts), "default_prompt_name": settings.default_prompt}
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    if pooling.normalize:
        (folder / paths["Normalize"]).mkdir(exist_ok=True)
    if settings.projection is not None:
        _write_projection(folder / paths["Dense"], settings.projection)
    return None


def _modules(path: Path) -> dict[str, str]:
    """Kind of each module -> where its files are, inside the folder."""
    modules = read_json(path)
    if not isinstance(modules, list) or not all(_is_module(module) for module in modules):
        raise FolderError("is not a list of modules, each with a type and a path", where=str(path))
    found: dict[str, str] = {}
    for module in modules:
        kind = module["type"].rpartition(".")[2]
        if kind in found:
            raise FolderError(f"is not a list of modules ({kind} occurs twice)", where=str(path))
        if not _is_inside(path.parent, module["path"]):
            raise FolderError(f"has the path {module['path'][:100]!r}, which leaves the folder", where=str(path))
        found[kind] = module["path"]
    return found


def _is_module(module: Any) -> bool:
    return isinstance(module, dict) and all(isinstance(module.get(key), str) for key in ("type", "path"))


def _is_inside(folder: Path, path: str) -> bool:
    """Whether a path stays in the folder, links included. Files in there may be links: the hub's cache consists of
    them."""
    if "\0" in path or Path(path).is_absolute() or ".." in Path(path).parts:
        return False
    try:
        return (folder / path).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a loop of links, a name that is too long
        return False


def _limit(path: Path) -> int | None:
    settings = read_object(path) if os.path.lexists(path) else {}
    limit = settings.get("max_seq_length")
    if limit is not None and (type(limit) is not int or not 1 <= limit <= LARGEST):
        raise FolderError(f"max_seq_length is {shown(limit)}, which is not a length", where=str(path))
    if settings.get("do_lower_case"):
        raise FolderError("do_lower_case is set, which is not supported here", where=str(path))
    return limit


def _prompts(path: Path) -> tuple[dict[str, str], str | None]:
    settings = read_object(path) if os.path.lexists(path) else {}
    prompts, default = settings.get("prompts") or {}, settings.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise FolderError(f"has the prompts {shown(prompts)}, which should be texts by name", where=str(path))
    if default is not None and (not isinstance(default, str) or default not in prompts):
        raise FolderError(f"the default prompt {shown(default)} is not among the prompts", where=str(path))
    return prompts, default


def _pooling(path: Path) -> Pooling:
    config = read_object(path)
    if config.get("include_prompt") is False:
        raise FolderError("include_prompt is off, which is not supported here", where=str(path))
    chosen: list[Any]
    if mode := config.get("pooling_mode"):
        chosen = mode if isinstance(mode, list) else [mode]
    else:
        chosen = [name.removeprefix("pooling_mode_").split("_tok")[0] for name, on in config.items() if on is True]
        chosen = [name for name in chosen if name in POOLING_MODES or name.startswith(("mean", "weighted", "last"))]
    if len(chosen) != 1 or not isinstance(chosen[0], str) or chosen[0] not in POOLING_MODES:
        named = " + ".join(one if isinstance(one, str) else shown(one) for one in chosen[:5])
        raise FolderError(
            f"has the pooling {named[:100] or 'none'}",
            where=str(path),
            hint=f"supported is one of {', '.join(POOLING_MODES)}",
        )
    return Pooling(tokens=POOLING_MODES[chosen[0]])


def _projection(folder: Path) -> Projection:
    config, where = read_object(folder / "config.json"), str(folder / "config.json")
    name = str(config.get("activation_function", "Tanh")).rpartition(".")[2]
    if name not in ACTIVATIONS:
        raise FolderError(
            f"has the activation {name}",
            where=where,
            hint=f"supported: {', '.join(ACTIVATIONS)}",
        )
    if config.get("use_residual") or config.get("module_input_name", VECTOR) != VECTOR:
        raise FolderError("has a dense layer that takes more than the pooled vector", where=where)
    tensors = read_weights(folder)
    weight, bias = tensors.get("linear.weight"), tensors.get("linear.bias")
    if weight is None or weight.ndim != 2 or (bias is None) == bool(config.get("bias", True)):
        raise FolderError("lacks the weights of a dense layer, linear.weight and linear.bias", where=str(folder))
    if not weight.is_floating_point() or (bias is not None and bias.shape != weight.shape[:1]):
        raise FolderError("has a dense layer whose weight and bias do not fit each other", where=str(folder))
    check_finite("linear.weight", weight, str(folder))
    if bias is not None:
        check_finite("linear.bias", bias, str(folder))
    return Projection(weight, bias, ACTIVATIONS[name])


def _write_projection(folder: Path, projection: Projection) -> None:
    size, width = projection.weight.shape
    config = {
        "in_features": width,
        "out_features": size,
        "bias": projection.bias is not None,
        "activation_function": CLASSES[projection.activation],
    }
    tensors = {"linear.weight": projection.weight}
    if projection.bias is not None:
        tensors["linear.bias"] = projection.bias
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    write_weights(folder, tensors, SINGLE)
