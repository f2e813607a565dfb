"""The runner: finished cells are not done again, begun ones go on, failed ones stop only what needs them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from experiments.cell import Cell
from experiments.runner import Runner
from experiments.store import Store

from bertie.errors import FolderError

ROOT = Path(__file__).resolve().parents[2]
Make = Callable[..., Cell]

# Two cells: one is quick, the other counts to five, a step every 0.1 s, goes on where it was, and ends well on SIGTERM.
SCRIPT = """
import json, signal, sys
from pathlib import Path
from experiments import runner
from experiments.cell import Cell
from experiments.store import Store

runner.made = lambda cell, commands, seconds: {}  # loads torch, which takes longer than all else here

COUNT = '''
import pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
signal.signal(signal.SIGTERM, lambda number, frame: ((folder / "saved").touch(), sys.exit(0)))
for number in range(len(list(folder.glob("step*"))), 5):
    time.sleep(float(sys.argv[2]))
    (folder / ("step" + str(number))).write_text(str(time.time()))
'''

def read(folder):
    return {"figures": {"steps": len(list(folder.glob("step*")))}, "curves": {}}

signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
waits = {"quick": "0", "slow": "0.1"}
cells = [Cell(name, [("{python}", "-c", COUNT, "{folder}", wait)], read) for name, wait in waits.items()]
working = runner.Runner(Store(Path(sys.argv[1])), lambda: Path(), lambda line: print(line, flush=True))
print(json.dumps(list(working.run(cells).results.values())), flush=True)
"""


def start(store: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, str(store)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_steps(store: Path, count: int) -> None:
    while len(list(store.glob("slow-*/work/step*"))) < count:
        time.sleep(0.01)


def test_what_is_finished_is_not_done_again(runner: Runner, make_cell: Make, said: list[str]) -> None:
    cells = [make_cell("base", 3, seed=1), make_cell("base", 4, seed=2)]
    first = runner.run(cells)
    second = runner.run(cells)
    assert first == second
    assert [result["figures"] for result in second.results.values()] == [
        *({"number": 3.0, "times": 1}, {"number": 4.0, "times": 1})
    ]
    assert said[-1] == "[2/2] base, seed 2: finished before"


def test_several_at_once_and_what_they_need_first(store: Store, make_cell: Make, said: list[str]) -> None:
    base = make_cell("base", 1)
    cells = [make_cell(f"number {number}", number, needs={"base": base}) for number in range(2, 6)]
    outcome = Runner(store, Path, said.append, jobs=3).run(cells)
    assert not outcome.failures
    assert list(outcome.results) == [base.digest, *(cell.digest for cell in cells)]
    assert [outcome.results[cell.digest]["figures"]["number"] for cell in cells] == [2, 3, 4, 5]
    done = [line for line in said if "done in" in line]
    assert done[0].startswith("[1/5] base") and len(done) == 5


def test_jobs_share_the_cores(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    write = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(os.environ['OMP_NUM_THREADS'])"
    command = ("{python}", "-c", write, "{folder}")
    cell = Cell("threads", [command], lambda file: {"figures": {"told": file.read_text()}})
    outcome = Runner(store, Path, print, jobs=2).run([cell])
    assert outcome.results[cell.digest]["figures"] == {"told": "2"}


def test_a_changed_configuration_is_another_cell(runner: Runner, make_cell: Make, store: Store) -> None:
    runner.run([make_cell("base", 3)])
    changed = make_cell("base", 5)
    assert (store.state(make_cell("base", 3)), store.state(changed)) == ("finished", "new")
    assert runner.run([changed]).results[changed.digest]["figures"] == {"number": 5.0, "times": 1}


def test_needs_are_made_once_and_their_folders_told(runner: Runner, make_cell: Make) -> None:
    corpus = make_cell("corpus", 7)
    copy = ("{python}", "-c", "import shutil, sys; shutil.copytree(sys.argv[1], sys.argv[2])", "{corpus}", "{folder}")
    cells = [
        replace(make_cell("base", 0, seed, {"corpus": corpus}), commands=[copy, ("true", str(seed))]) for seed in (1, 2)
    ]
    outcome = runner.run(cells)
    assert [outcome.results[cell.digest]["figures"] for cell in cells] == [{"number": 7.0, "times": 1}] * 2


def test_a_failure_stops_only_what_needs_it(runner: Runner, make_cell: Make, store: Store, said: list[str]) -> None:
    fails = ("{python}", "-c", "import sys; print('no such model'); sys.exit(2)")
    broken = replace(make_cell("broken", 1), commands=[fails])
    cells = [make_cell("late", 1, needs={"corpus": broken}), make_cell("good", 2)]
    outcome = runner.run(cells)
    assert set(outcome.results) == {cells[1].digest}
    assert "no such model" in outcome.failures[broken.digest] and "code 2" in outcome.failures[broken.digest]
    assert "it needs broken, which failed" in outcome.failures[cells[0].digest]
    assert store.result(broken) is None


@pytest.mark.parametrize(("resumes", "times"), [(True, 2), (False, 1)])
def test_an_unfinished_folder_is_gone_on_with_or_begun_anew(
    runner: Runner, make_cell: Make, store: Store, resumes: bool, times: int
) -> None:
    cell = replace(make_cell("base", 3), resumes=resumes)
    store.work(cell).mkdir(parents=True)
    (store.work(cell) / "times.txt").write_text("x")
    assert store.state(cell) == "begun"
    assert runner.run([cell]).results[cell.digest]["figures"]["times"] == times


def test_a_result_says_by_what_it_was_made(runner: Runner, make_cell: Make) -> None:
    cell = make_cell("base", 3, seed=1)
    made = runner.run([cell]).results[cell.digest]["made"]
    assert made["cell"] == "base, seed 1"
    assert made["commands"][0][0] == sys.executable
    assert made["code"] and made["date"] and made["machine"]


def test_a_killed_experiment_goes_on(store: Store) -> None:
    process = start(store.folder)
    wait_for_steps(store.folder, 2)
    process.kill()
    process.wait()
    # The command outlives its runner, and nobody else may work on the same folder meanwhile.
    with pytest.raises(FolderError, match="at work here"), store.locked():
        pytest.fail("two held the store")
    while True:
        try:
            with store.locked():
                break
        except FolderError:
            time.sleep(0.02)
    done = {path.name: path.read_text() for path in store.folder.glob("slow-*/work/step*")}
    again = start(store.folder)
    printed, _ = again.communicate()
    assert again.returncode == 0, printed
    assert "quick: finished before" in printed and "slow: goes on" in printed
    assert '{"steps": 5}' in printed
    assert done.items() <= {path.name: path.read_text() for path in store.folder.glob("slow-*/work/step*")}.items()


def test_a_stopped_experiment_lets_its_command_save(store: Store) -> None:
    process = start(store.folder)
    wait_for_steps(store.folder, 1)
    os.kill(process.pid, signal.SIGTERM)
    process.communicate()
    assert process.returncode == 143
    assert len(list(store.folder.glob("slow-*/work/saved"))) == 1
    assert not list(store.folder.glob("slow-*/result.json"))
    printed, _ = start(store.folder).communicate()
    assert '{"steps": 5}' in printed
