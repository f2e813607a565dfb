"""`python -m tests.faults`: tries every fault, prints the table, and writes it into docs/reliability.md.

Everything runs in forks of this process, one after another: on two cores in less than half an hour.
"""

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

from tests.faults import corruption, hostile_folders, interruptions, misuses
from tests.faults.trying import BAD, OUTCOMES, Tally, load_everything
from tests.faults.workplace import Workplace

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
COLUMNS = ("fault", "component", "tries", *OUTCOMES, *BAD)
TEXT = """# Reliability

`make faults` tries these faults and writes this page. A try is one command in a process of its own, with limits on time
and memory. What may become of it:

- clean error: one sentence says what is wrong and what to do, exit code 2.
- announced: it continues, and a warning names the file.
- recovered: the same command, run again, ends in the same bits as an undisturbed one.
- same result: nothing that the command reads was hit, or what was hit does not matter.
- opened: a model folder that is odd, but describes a model.

The columns after these must be 0: another result without a word, work that is lost, a traceback, a crash or a hang.

{table}

{skipped}{failures}{tries:,} tries, {bad} bad, in {minutes:.0f} minutes on {machine}, {day}.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", choices=("corruption", "interruptions", "hostile", "misuses"), action="append")
    parser.add_argument("--bytes", type=int, default=540, help="changed bytes, about")
    parser.add_argument("--interruptions", type=int, default=6, help="tries of each interruption of each command")
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args(arguments)
    load_everything()
    begun, tallies = time.monotonic(), list[Tally]()
    with tempfile.TemporaryDirectory(prefix="bertie-faults-") as folder:
        work = Path(folder)
        os.environ["XDG_CACHE_HOME"] = str(work / "cache")
        (work / "place").mkdir()
        place = Workplace(work / "place")
        groups = {
            "corruption": lambda: corruption.rows(place, work, given.bytes),
            "interruptions": lambda: interruptions.rows(place, work, given.interruptions),
            "hostile": lambda: hostile_folders.rows(),
            "misuses": lambda: misuses.rows(place, work),
        }
        for name in given.only or groups:
            for tally in groups[name]():
                tallies.append(tally)
                show(line(tally), *(f"  {failure}" for failure in tally.failures))
    minutes = (time.monotonic() - begun) / 60
    if not given.only:
        given.out.write_text(page(tallies, minutes), "utf-8")
    bad = sum(tally.num_bad for tally in tallies)
    show(f"{sum(tally.tries for tally in tallies):,} tries, {bad} bad, {minutes:.1f} minutes")
    return 1 if bad else 0


def show(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def line(tally: Tally) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in tally.outcomes.items())
    return f"{tally.fault}, {tally.component}: {tally.tries} tries: {counts or tally.skipped}"


def page(tallies: Sequence[Tally], minutes: float) -> str:
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * 2 + "|---:" * (len(COLUMNS) - 2) + "|"]
    for tally in [one for one in tallies if one.tries]:
        counts = [tally.tries, *(tally.outcomes[name] for name in (*OUTCOMES, *BAD))]
        lines.append(f"| {tally.fault} | {tally.component} | {' | '.join(map(str, counts))} |")
    total = [sum(tally.outcomes[name] for tally in tallies) for name in (*OUTCOMES, *BAD)]
    tries = sum(tally.tries for tally in tallies)
    lines.append(f"| **all** | | {tries} | {' | '.join(map(str, total))} |")
    skipped = [f"Skipped: {one.fault}, {one.component}: {one.skipped}.\n" for one in tallies if one.skipped]
    failures = [f"- {failure.replace('|', ' ')}\n" for one in tallies for failure in one.failures]
    return TEXT.format(
        table="\n".join(lines),
        skipped="".join(skipped) + ("\n" if skipped else ""),
        failures="".join(failures) + ("\n" if failures else ""),
        tries=tries,
        bad=sum(tally.num_bad for tally in tallies),
        minutes=minutes,
        machine=f"{os.cpu_count()} cores, Python {platform.python_version()}",
        day=datetime.now(UTC).date().isoformat(),
    )


if __name__ == "__main__":
    sys.exit(main())
