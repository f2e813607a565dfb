"""Who uses the processor: the system's counters enter, seconds leave; None where it has no such counter."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
QUIET_LOAD = 0.5


def busy_seconds() -> float | None:
    """Processor seconds that anything used since boot, what the host took for other machines included."""
    try:
        fields = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()[1:]
    except OSError:
        return None
    user, nice, system, _idle, _wait, irq, softirq, steal = (int(field) for field in fields[:8])
    return (user + nice + system + irq + softirq + steal) / TICKS


def process_seconds(pid: int) -> float | None:
    """Processor seconds of one process, all its threads."""
    try:
        # The name in brackets may hold blanks.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS


def load_warning(load: float) -> str | None:
    """`load` is the load average of the last minute."""
    if load <= QUIET_LOAD:
        return None
    return f"the machine is not quiet (load average {load:.1f}): figures of this run are worth little"


def foreign_share(turns: Iterable[Mapping[str, Any]], cores: int) -> float:
    """Which share of the processor others used during these turns."""
    counted = [turn for turn in turns if "foreign" in turn]
    spent = sum(turn.get("wall", turn.get("seconds", 0.0)) for turn in counted)
    return sum(turn["foreign"] for turn in counted) / (spent * cores) if spent else 0.0
