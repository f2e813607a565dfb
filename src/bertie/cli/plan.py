"""`bertie plan`: the options of `bertie pretrain` enter, what the run would take leaves. Nothing is trained."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bertie.cli.app import console
from bertie.cli.pretrain import pretrain
from bertie.cli.pretrain_request import read_request
from bertie.inspection.plan import SECONDS, RunPlan, plan_run, smaller_sizes
from bertie.inspection.quantities import bytes_told, duration_told, flops_told
from bertie.machine import memory_bytes
from bertie.models.recipe import Recipe

TIGHT = 0.9  # of all memory
OUT = typer.Option(None, help="As for pretrain; nothing is written there.")
OWN = {
    "probe_seconds": (
        float,
        typer.Option(SECONDS, min=0.1, help="How long to try steps; a third of it a smaller size."),
    ),
    "smaller": (bool, typer.Option(True, help="Also try the recipe's smaller sizes.")),
    "as_json": (bool, typer.Option(False, "--json", help="Print one JSON object a size.")),
}


@wraps(pretrain, assigned=())
def plan(**options: Any) -> None:
    """Tell what a run would take before it starts: FLOPs, time, memory and disk, and what a smaller size would.

    The options are those of `bertie pretrain`. The real model takes real steps for some seconds, in a process of its
    own, and is then forgotten.
    """
    probe_seconds, smaller, as_json = (options.pop(name) for name in OWN)
    request = read_request(options["ctx"])
    recipe = request.model.recipe
    recipes = {"": recipe}
    if smaller and options["base"] is None:
        recipes |= smaller_sizes(recipe, request.options.length)
    plans: dict[str, RunPlan] = {}
    with console.status("") as status:
        for name, one in recipes.items():
            status.update(f"Trying {size_told(one)} ...")
            seconds = probe_seconds if one is recipe else probe_seconds / 3
            plans[name] = plan_run(one, request.corpus, request.tokenizer, request.options, seconds, options["teacher"])
    if as_json:
        for name, found in plans.items():
            typer.echo(json.dumps({"size": name or None, "recipe": size_told(recipes[name]), **facts_of(found)}))
        return
    print_plan(recipe, plans[""])
    if len(plans) > 1:
        print_sizes(recipes, plans)


def _signature() -> inspect.Signature:
    """Pretrain's, but that --out may be left out, and with what a plan asks besides."""
    kept = inspect.signature(pretrain).parameters.values()
    kept_or_free = [one.replace(default=OUT, annotation=Path | None) if one.name == "out" else one for one in kept]
    kind = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(name, kind, default=option, annotation=type) for name, (type, option) in OWN.items()]
    return inspect.Signature([*kept_or_free, *added], return_annotation=None)


# Typer reads these two.
plan.__signature__ = _signature()  # type: ignore[attr-defined]
plan.__annotations__ = {one.name: one.annotation for one in _signature().parameters.values()}


def size_told(recipe: Recipe) -> str:
    return f"{recipe.name} {recipe.encoder.stack.depth}/{recipe.encoder.width}"


def facts_of(found: RunPlan) -> dict[str, Any]:
    derived = ("flops_per_token", "total_seconds", "tokens_per_second", "share_of_peak")
    return {**asdict(found), **{name: getattr(found, name) for name in derived}}


def print_plan(recipe: Recipe, found: RunPlan) -> None:
    parts, seconds = found.parts, found.seconds
    share = found.share_of_peak
    at_peak = f", {share:.0%} of the machine's float32 peak" if share is not None else ""
    spent = ", ".join(f"{what} {duration_told(taken)}" for what, taken in seconds.items())
    there = memory_bytes()
    of = f" of {bytes_told(there)}" if there else ""
    kept = {
        "weights": parts.parameters,
        "gradients": parts.gradients,
        "optimiser": parts.optimiser,
        "activations": parts.activations,
    }
    counted = ", ".join(f"{what} {bytes_told(size)}" for what, size in kept.items())
    facts = {
        "model": f"{size_told(recipe)}, {found.num_parameters:,} parameters",
        "work": f"{found.num_steps:,} steps, {found.num_tokens:,} tokens, {flops_told(found.flops)}",
        "a token": f"{flops_told(found.flops_per_token)}, forward and backward",
        "speed": f"{found.tokens_per_second:,.0f} tokens/s{at_peak}",
        "time": f"{duration_told(found.total_seconds)} ({spent})",
        "memory": f"{bytes_told(found.memory)}{of} ({counted})",
        "disk": f"{bytes_told(found.disk)} at most",
    }
    for name, told in facts.items():
        typer.echo(f"{name:<8} {told}")
    if there and found.memory > there * TIGHT:
        console.print("memory is tight: fewer --micro-tokens need less of it", style="yellow", highlight=False)


def print_sizes(recipes: Mapping[str, Recipe], plans: Mapping[str, RunPlan]) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, heading in enumerate(("size", "", "parameters", "FLOPs/token", "tokens/s", "tokens", "time", "memory")):
        table.add_column(heading, justify="left" if number < 2 else "right", no_wrap=True)
    for name, found in plans.items():
        table.add_row(
            name or "this",
            f"{recipes[name].encoder.stack.depth}/{recipes[name].encoder.width}",
            f"{found.num_parameters / 1e6:.1f} M",
            f"{found.flops_per_token / 1e6:,.0f} M",
            f"{found.tokens_per_second:,.0f}",
            f"{found.num_tokens / 1e6:,.1f} M",
            duration_told(found.total_seconds),
            bytes_told(found.memory),
        )
    Console().print(table)
