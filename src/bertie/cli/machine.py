"""`bertie machine`: what this machine has and how fast each precision runs on it."""

import typer

from bertie.cli.app import console
from bertie.machine import Machine, probe


def machine(
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
    refresh: bool = typer.Option(False, "--refresh", help="Measure again instead of using what is remembered."),
) -> None:
    """Show the machine: its cores, memory and instructions, which precisions run and how fast.

    Each precision is tried in a process of its own, so that an instruction the machine lacks harms nothing. The answer
    is remembered in the user's cache folder.
    """
    with console.status("Measuring each precision in a child process ..."):
        found = probe(refresh=refresh)
    typer.echo(found.model_dump_json(indent=2) if as_json else describe(found))


def describe(machine: Machine) -> str:
    memory = f"{machine.memory / 2**30:.1f} GiB" if machine.memory else "unknown"
    facts = {
        "processor": machine.cpu,
        "instructions": " ".join(machine.instruction_sets) or "none that matter here",
        "cores": f"{machine.cores} (torch uses {machine.threads} threads)",
        "memory": memory,
        "torch": machine.torch,
    }
    lines = [f"{name:<13} {value}" for name, value in facts.items()]
    for name, precision in machine.precisions.items():
        unit = "TOP/s" if name.startswith("int") else "TFLOP/s"
        speed = f"{precision.speed:.3f} {unit}" if precision.runs and precision.speed else precision.note
        lines.append(f"{name:<13} {speed}")
    fastest = machine.fastest(exact=False)
    return "\n".join([*lines, f"{'fastest':<13} {fastest}; float32 where nothing may be lost"])
