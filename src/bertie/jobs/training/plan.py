"""The job `plan`: estimates what a pre-training run would take. Nothing is trained or written."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from rich.box import SIMPLE_HEAD
from rich.table import Table

from bertie.devices import choose_device
from bertie.jobs.job import Group, option
from bertie.jobs.result import Result
from bertie.jobs.training.pretrain import OutputOptions, PretrainJob
from bertie.machine import memory_bytes
from bertie.models.recipe import Recipe
from bertie.reporting.events import OnEvent, ignore, progress
from bertie.reporting.quantities import format_bytes, format_duration, format_flops
from bertie.train.planning.run_plan import SECONDS, RunPlan, plan_run, smaller_sizes

TIGHT = 0.9  # of all memory


class ProbeOptions(Group):
    title: ClassVar[str] = "Estimate"
    probe_seconds: float = option(
        SECONDS, "How long to try steps; a third of it for a smaller size.", common=True, ge=0.1, le=3600
    )
    smaller: bool = option(True, "Also try the recipe's smaller sizes.", common=True)


class PlannedOutput(OutputOptions):
    out: Path | None = option(None, "Not used: a plan writes nothing.", metavar="FOLDER")


class PlanJob(PretrainJob):
    """Estimate what a run would take: FLOPs, time, memory and disk, also at smaller sizes.

    The options are those of `bertie pretrain`. The real model takes real steps for some seconds, in a process of its
    own; nothing is kept.
    """

    verb: ClassVar[str] = "plan"
    example: ClassVar[str] = "bertie plan --recipe bert --size mini --corpus my-corpus --steps 2000"
    output: PlannedOutput = PlannedOutput()
    probe: ProbeOptions = ProbeOptions()

    def run(self, on_event: OnEvent = ignore) -> "PlanResult":  # type: ignore[override]
        device, prepared = choose_device(self.training.device), self.prepare()
        recipe = prepared.model.recipe
        recipes = {"": recipe}
        if self.probe.smaller and self.model.base is None:
            recipes |= smaller_sizes(recipe, prepared.options.length)
        plans: dict[str, RunPlan] = {}
        for name, one in recipes.items():
            on_event(progress(f"Trying {format_size(one)}", len(plans), len(recipes), "sizes"))
            seconds = self.probe.probe_seconds / (1 if one is recipe else 3)
            plans[name] = plan_run(
                one,
                prepared.corpus,
                prepared.tokenizer,
                prepared.options,
                seconds,
                self.model.teacher,
                device=device,
            )
        return PlanResult(recipes, plans)


class PlanResult(Result):
    """Plans by size; that of the run itself is under ""."""

    def __init__(self, recipes: Mapping[str, Recipe], plans: Mapping[str, RunPlan]):
        self.recipes, self.plans = recipes, plans

    def to_json(self) -> Any:
        derived = ("flops_per_token", "total_seconds", "tokens_per_second", "share_of_peak")
        return [
            {
                "size": name or None,
                "recipe": format_size(self.recipes[name]),
                **asdict(plan),
                **{fact: getattr(plan, fact) for fact in derived},
            }
            for name, plan in self.plans.items()
        ]

    def parts(self) -> Iterable[Any]:
        plan, recipe = self.plans[""], self.recipes[""]
        memory, all_memory = plan.parts, plan.device_memory or memory_bytes()
        share = plan.share_of_peak
        parts = {"weights": memory.parameters, "gradients": memory.gradients, "optimizer": memory.optimizer}
        used = ", ".join(
            f"{what} {format_bytes(size)}" for what, size in {**parts, "activations": memory.activations}.items()
        )
        spent = ", ".join(f"{what} {format_duration(taken)}" for what, taken in plan.seconds.items())
        facts = {
            "model": f"{format_size(recipe)}, {plan.num_parameters:,} parameters",
            "work": f"{plan.num_steps:,} steps, {plan.num_tokens:,} tokens, {format_flops(plan.flops)}",
            "a token": f"{format_flops(plan.flops_per_token)}, forward and backward",
            "speed": f"{plan.tokens_per_second:,.0f} tokens/s"
            + (f", {share:.0%} of the machine's {plan.precision} peak" if share is not None else ""),
            "time": f"{format_duration(plan.total_seconds)} ({spent})",
            "memory": f"{format_bytes(plan.memory)}"
            + (f" of {format_bytes(all_memory)}" if all_memory else "")
            + f" ({used})",
            "disk": f"{format_bytes(plan.disk)} at most",
        }
        yield from (f"{name:<8} {text}" for name, text in facts.items())
        if all_memory and plan.memory > all_memory * TIGHT:
            yield "memory is tight: a smaller `micro_tokens` needs less of it"
        if len(self.plans) > 1:
            yield self._sizes()

    def _sizes(self) -> Table:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        headings = ("size", "", "parameters", "FLOPs/token", "tokens/s", "tokens", "time", "memory")
        for number, heading in enumerate(headings):
            table.add_column(heading, justify="left" if number < 2 else "right", no_wrap=True)
        for name, plan in self.plans.items():
            table.add_row(
                name or "this",
                f"{self.recipes[name].encoder.stack.depth}/{self.recipes[name].encoder.width}",
                f"{plan.num_parameters / 1e6:.1f} M",
                f"{plan.flops_per_token / 1e6:,.0f} M",
                f"{plan.tokens_per_second:,.0f}",
                f"{plan.num_tokens / 1e6:,.1f} M",
                format_duration(plan.total_seconds),
                format_bytes(plan.memory),
            )
        return table


def format_size(recipe: Recipe) -> str:
    return f"{recipe.name} {recipe.encoder.stack.depth}/{recipe.encoder.width}"
