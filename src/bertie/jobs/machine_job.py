"""The job `machine`: measures which precisions and engines run on this machine and how fast."""

from collections.abc import Iterable
from typing import Any, ClassVar

from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from bertie.jobs.job import Job, option
from bertie.jobs.result import Result
from bertie.machine import Machine, probe
from bertie.nn.products.choice import Class, Role, choose
from bertie.nn.products.measuring import Reports, measured_engines
from bertie.reporting.events import Event, OnEvent, ignore


class MachineJob(Job):
    """Show the machine: cores, memory, instruction sets, which precisions run, and which engine multiplies matrices.

    Each precision and engine is tried in a process of its own, so that a missing instruction harms nothing. The answer
    is remembered in the user's cache folder.
    """

    verb: ClassVar[str] = "machine"
    example: ClassVar[str] = "bertie machine --json"
    refresh: bool = option(False, "Measure again instead of using the remembered answer.", common=True)

    def run(self, on_event: OnEvent = ignore) -> "MachineResult":
        stage = "Measuring each precision and engine"
        on_event(Event("progress", data={"stage": stage, "done": 0, "total": None, "unit": ""}))
        return MachineResult(probe(refresh=self.refresh), measured_engines(short=True, refresh=self.refresh))


class MachineResult(Result):
    def __init__(self, machine: Machine, reports: Reports):
        self.machine, self.reports = machine, reports
        self.choice = choose(reports, "float32")

    def to_json(self) -> Any:
        engines = {name: report.model_dump(mode="json") for name, report in self.reports.items()}
        chosen = {f"{role}, {kind}": name for (role, kind), name in self.choice.items()}
        return {**self.machine.model_dump(mode="json"), "engines": engines, "chosen": chosen}

    def parts(self) -> Iterable[str | Table]:
        machine = self.machine
        facts = {
            "processor": machine.cpu,
            "instructions": " ".join(machine.instruction_sets) or "none that matter here",
            "cores": f"{machine.cores} (torch uses {machine.threads} threads)",
            "memory": f"{machine.memory / 2**30:.1f} GiB" if machine.memory else "unknown",
            "torch": machine.torch,
        }
        for name, precision in machine.precisions.items():
            unit = "TOP/s" if name.startswith("int") else "TFLOP/s"
            facts[name] = f"{precision.speed:.3f} {unit}" if precision.runs and precision.speed else precision.note
        facts["fastest"] = f"{machine.fastest(exact=False)}; float32 where nothing may be lost"
        yield from (f"{name:<13} {value}" for name, value in facts.items())
        yield "\nMatrix products in GFLOP/s on one thread, by engine; * is in use for float32:"
        yield self._engines()
        for name, report in self.reports.items():
            if report.note:
                yield f"{name} {report.note}"

    def _engines(self) -> Table:
        headers = (Column(name, min_width=len(name)) for name in ("", *self.reports))
        table = Table(*headers, box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for role in Role:
            for kind in Class:
                cells = []
                for name, report in self.reports.items():
                    found = report.products.get(f"{role}, {kind}")
                    star = " *" if name == self.choice[role, kind] else ""
                    cells.append("" if found is None else f"{found.speed / 1e9:,.0f}{star}")
                table.add_row(f"{role}, {kind}", *cells)
        return table
