import json
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from bertie.machine import Machine, Precision
from bertie.nn.products.measuring import EngineReport, Measured, Reports

Run = Callable[..., subprocess.CompletedProcess[str]]

KNOWN = Machine(
    cpu="A Processor",
    instruction_sets=("avx2", "amx_bf16"),
    cores=2,
    threads=2,
    memory=8 * 2**30,
    torch="2.13.0",
    precisions={
        "float32": Precision(runs=True, speed=0.36),
        "bfloat16": Precision(runs=False, speed=None, note="crashes (SIGILL)"),
        "int8": Precision(runs=True, speed=1.2),
    },
)

ENGINES = {
    "torch": EngineReport(products={"forward, wide": Measured(speed=1e11, error=1e-7)}),
    "onednn": EngineReport(products={"forward, wide": Measured(speed=4e11, error=1e-7)}),
    "onednn-packed": EngineReport(note="crashes (SIGILL)"),
}


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Answer with a known machine, and remember whether a new measurement was asked for."""
    import bertie.jobs.machine_job

    refreshes: list[bool] = []

    def answer(refresh: bool) -> Machine:
        refreshes.append(refresh)
        return KNOWN

    def engines(short: bool, refresh: bool) -> Reports:
        assert short
        return ENGINES

    monkeypatch.setattr(bertie.jobs.machine_job, "probe", answer)
    monkeypatch.setattr(bertie.jobs.machine_job, "measured_engines", engines)
    return refreshes


def test_the_report_names_what_runs_and_what_crashes(run_bertie: Run) -> None:
    done = run_bertie("machine")
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if len(line.split()) > 1)
    assert done.returncode == 0
    assert lines["processor"] == "A Processor"
    assert lines["cores"] == "2 (torch uses 2 threads)"
    assert lines["memory"] == "8.0 GiB"
    assert lines["float32"] == "0.360 TFLOP/s"
    assert lines["bfloat16"] == "crashes (SIGILL)"
    assert lines["int8"] == "1.200 TOP/s"
    assert lines["fastest"].startswith("int8")
    assert re.search(r"forward, wide +100 +400 \*", done.stdout)
    assert lines["onednn-packed"] == "crashes (SIGILL)"


def test_json_holds_the_whole_machine_and_its_engines(run_bertie: Run) -> None:
    done = run_bertie("machine", "--json")
    found = json.loads(done.stdout)
    assert Machine.model_validate(found) == KNOWN
    assert found["chosen"]["forward, wide"] == "onednn"
    assert found["engines"]["onednn"]["products"]["forward, wide"]["speed"] == 4e11


def test_refresh_is_passed_on(run_bertie: Run, asked: list[bool]) -> None:
    run_bertie("machine")
    run_bertie("machine", "--refresh")
    assert asked == [False, True]


@pytest.mark.slow
def test_the_installed_command_measures_this_machine(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bertie.cli.app", "machine", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env={"XDG_CACHE_HOME": str(tmp_path), "PATH": "", "OMP_NUM_THREADS": "1"},
    )
    found = Machine.model_validate_json(done.stdout)
    assert json.loads(done.stdout)["engines"]["torch"]["products"]
    assert found.precisions["float32"].runs
    assert set(found.precisions) == {"float32", "bfloat16", "float16", "int8"}
