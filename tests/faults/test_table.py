"""A small sample of the table that `make faults` tries, and the judgement of a try."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.__main__ import page
from tests.faults.trying import Ran, Tally

# In a process of its own: it forks, and this one may have threads.
SAMPLE = """
import sys
from pathlib import Path
from tests.faults import corruption, interruptions, misuses
from tests.faults.trying import load_everything
from tests.faults.workplace import Workplace
load_everything()
work = Path(sys.argv[1])
(work / "place").mkdir()
place = Workplace(work / "place")
kinds = ("corpus, verify", "corpus shards, pretrain", "model.safetensors", "vectors of an unfinished embed")
tallies = [*corruption.rows(place, work, 12, kinds), *misuses.rows(place, work, ["fill"])]
command = place.commands()[-1]
(work / "whole").mkdir()
interruptions.run(*command.words(work / "whole" / command.out))
wanted = command.digest(work / "whole" / command.out)
tallies.append(interruptions.try_kills(command, work, wanted, 0.5, 2))
for tally in tallies:
    sys.stdout.write(f"{tally.fault}, {tally.component}: {dict(tally.outcomes)}\\n")
sys.exit("\\n".join(failure for tally in tallies for failure in tally.failures) or 0)
"""


def test_a_sample_of_the_table(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SAMPLE, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "changed byte, model.safetensors: {'clean error': " in done.stdout


@pytest.mark.parametrize(
    ("ran", "fault", "clean"),
    [
        (Ran(0, "fine", ""), None, False),
        (Ran(2, "", "the file is missing; give another\n"), None, True),
        (Ran(2, "", "Usage: bertie fill\n"), None, False),
        (Ran(1, "", "Traceback (most recent call last):\n"), "traceback", False),
        (Ran(1, "", ""), "traceback", False),
        (Ran(-9, "", ""), "crash or hang", False),
    ],
)
def test_a_try_is_judged(ran: Ran, fault: str | None, clean: bool) -> None:
    assert (ran.fault, ran.is_clean_error) == (fault, clean)


def test_the_page_has_a_row_for_each_fault_and_names_what_failed() -> None:
    first, second = Tally("kill", "embed"), Tally("full disk", "embed", skipped="only root may mount a small disk")
    first.add("recovered")
    first.add("loss", "killed in try 3")
    written = page([first, second], 1.0)
    assert "| kill | embed | 2 | 0 | 0 | 1 | 0 | 0 | 0 | 1 | 0 | 0 |" in written
    assert "Skipped: full disk, embed: only root may mount a small disk." in written
    assert "- kill, embed: killed in try 3: loss" in written and "2 tries, 1 bad" in written
