"""The job `machine`: measures which precisions run on this machine and how fast."""

from collections.abc import Iterable
from typing import Any, ClassVar

from bertie.jobs.job import Job, option
from bertie.jobs.result import Result
from bertie.machine import Machine, probe
from bertie.reporting.events import Event, OnEvent, ignore


class MachineJob(Job):
    """Show the machine: cores, memory, instruction sets, which precisions run and how fast.

    Each precision is tried in a process of its own, so that a missing instruction harms nothing. The answer is
    remembered in the user's cache folder.
    """

    verb: ClassVar[str] = "machine"
    example: ClassVar[str] = "bertie machine --json"
    refresh: bool = option(False, "Measure again instead of using the remembered answer.", common=True)

    def run(self, on_event: OnEvent = ignore) -> "MachineResult":
        on_event(Event("progress", data={"stage": "Measuring each precision", "done": 0, "total": None, "unit": ""}))
        return MachineResult(probe(refresh=self.refresh))


class MachineResult(Result):
    def __init__(self, machine: Machine):
        self.machine = machine

    def to_json(self) -> Any:
        return self.machine.model_dump(mode="json")

    def parts(self) -> Iterable[str]:
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
        return [f"{name:<13} {value}" for name, value in facts.items()]
