"""Names what differs between the options of two runs as users name it: `lr`, not optimizer.rate."""

from collections.abc import Iterator
from typing import Any

from bertie.text.one_line import shortened

# What options.json holds -> the option that decides it. The longest name that fits counts; "" is for what no option
# decides alone: it is listed only where nothing else differs.
OPTION_OF = {
    "version": "",
    "from": "base",
    "corpus": "corpus",
    "tokenizer": "tokenizer",
    "teacher": "teacher",
    "recipe": "",
    "recipe.name": "recipe",
    "recipe.encoder": "size",
    "recipe.objectives": "",
    "data": "train",
    "data.train": "train",
    "data.dev": "dev",
    "data.columns": "column",
    "options": "",
    "options.budget.steps": "steps",
    "options.budget.tokens": "tokens",
    "options.budget.seconds": "time",
    "options.length": "max_length",
    "options.batch_rows": "batch",
    "options.micro_tokens": "micro_tokens",
    "options.optimizer.kind": "optimizer",
    "options.optimizer.rate": "lr",
    "options.optimizer.decay": "weight_decay",
    "options.schedule.kind": "schedule",
    "options.schedule.warmup": "warmup",
    "options.ramp.begin": "ramp_from",
    "options.ramp.share": "ramp_share",
    "options.adversary.kind": "adversarial",
    "options.adversary": "epsilon",
    "options.top.layers": "features",
    "options.top.lstm": "top",
    "options.learning.freeze": "freeze",
    "options.learning.unfreeze_every": "unfreeze_every",
    "options.learning.layer_decay": "layer_decay",
    "options.low_rank.rank": "lora",
    "options.low_rank.alpha": "lora_alpha",
    "options.low_rank.dropout": "lora_dropout",
    "options.low_rank.on": "lora_on",
    "options.noise.rate": "noise",
    "options.noise": "confusable",
    **{
        f"options.{name}": name
        for name in (
            *("epochs", "seed", "batch_tokens", "precision", "static_masks", "clip", "save_every", "keep"),
            *("held_out", "eval_every", "eval_rows", "log_every", "patience", "curriculum"),
        )
    },
}
# Fields of an objective or a task -> the option.
OBJECTIVE_OPTION_OF = {
    "choose": "mask",
    "rate": "mask_rate",
    "samples": "sentences",
    "stride": "stride",
    "longest": "longest_answer",
    "sizes": "sizes",
    "criterion": "loss",
    "crf": "crf",
}
# Options that other options decide unless they are given: listed only where nothing else differs.
DERIVED = (
    *("", "base", "size", "steps", "save_every", "eval_every", "micro_tokens", "precision"),
    *("epsilon", "layer_decay", "ramp_share", "lora_alpha", "lora_dropout", "lora_on"),
)
START = "the model that it starts from was another (`base`, or `recipe` and `size`)"
# What has no value that a user would recognize.
WITHOUT_VALUE = ("corpus", "tokenizer", "teacher", "confusable", "curriculum", "top", "mask", "sentences")
COLUMNS = 60  # of a value
SHOWN = 5


def changed_options(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """One phrase for each option that differs, as "`lr` was 0.001, now 0.0005"; empty where nothing differs."""
    found: dict[str, str] = {}
    for name, old, new in _differences(_named(before), _named(now)):
        option = _option_of(name)
        found.setdefault(option, _phrase(option, name, old, new))
    decided = {"steps"} if "epochs" not in now.get("options", {}) else set()  # by the user, in pre-training
    derived = [option for option in found if option in DERIVED and option not in decided]
    phrases = [phrase for option, phrase in found.items() if option not in derived]
    if not phrases and found.keys() & {"base", "size"}:
        phrases = [START]
    phrases = phrases or list(found.values())
    more = len(phrases) - SHOWN
    return [*phrases[:SHOWN], *([f"and {more} more"] if more > 0 else [])]


def _phrase(option: str, name: str, old: Any, new: Any) -> str:
    if not option:
        return f"{name} was {_shown(old)}, now {_shown(new)}"
    if option in WITHOUT_VALUE:
        return f"`{option}` was another"
    return f"`{option}` was {_shown(old)}, now {_shown(new)}"


def _shown(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, list):
        return shortened(", ".join(map(str, value)), COLUMNS)
    return shortened(str(value), COLUMNS)


def _named(resolved: dict[str, Any]) -> dict[str, Any]:
    """With objectives by name, and the data of the tasks by name: files and rows apart from columns."""
    recipe = resolved.get("recipe", {})
    objectives = {one["name"].replace(".", "-"): one for one in recipe.get("objectives", ()) if "name" in one}
    resolved = {**resolved, "recipe": {**recipe, "objectives": objectives}}
    options = resolved.get("options", {})
    if groups := options.get("optimizer", {}).get("groups"):  # Muon and AdamW, which have the same rate and decay
        optimizer = {**groups[-1]["optimizer"], "kind": groups[0]["optimizer"]["kind"]}
        resolved = {**resolved, "options": {**options, "optimizer": optimizer}}
    data = resolved.get("data")
    if not isinstance(data, list):
        return resolved
    parts: dict[str, Any] = {}
    for task in data:
        for side, facts in task.items():
            shown = None if facts is None else f"{facts[0]} ({facts[1]:,} rows)"
            parts[side] = ", ".join(filter(None, [parts.get(side), shown])) or None
        columns = task["train"] and [f"{role}={column}" for role, column in task["train"][2].items()]
        parts["columns"] = [*parts.get("columns", []), *columns]
    return {**resolved, "data": parts}


def _differences(before: Any, now: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Name, old value and new value of everything that differs between two JSON values."""
    old, new = (one if isinstance(one, dict) else {} if one is None else None for one in (before, now))
    if old is not None and new is not None and (old or new):
        for key in dict.fromkeys([*old, *new]):
            yield from _differences(old.get(key), new.get(key), f"{name}.{key}" if name else key)
    elif before != now:
        yield name, before, now


def _option_of(name: str) -> str:
    if name.startswith("recipe.objectives."):
        return OBJECTIVE_OPTION_OF.get(name.split(".")[3], "") if name.count(".") > 2 else ""
    while name not in OPTION_OF:
        name = name.rpartition(".")[0]
        if not name:
            return ""
    return OPTION_OF[name]
