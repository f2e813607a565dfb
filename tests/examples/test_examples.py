"""Every script in examples/ runs, and stays short."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
ARGUMENTS: dict[str, list[str]] = {"domain_model.py": ["--steps", "10"]}


def run(script: str, *arguments: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_examples_are_short() -> None:
    scripts = list(EXAMPLES.glob("*.py"))
    assert len(scripts) == 5
    assert all(len(script.read_text(encoding="utf-8").splitlines()) <= 40 for script in scripts)


@pytest.mark.parametrize(
    "script", ["domain_model.py", "classifier_from_dataframe.py", "chinese_ner.py", "custom_objective.py"]
)
def test_the_example_runs(script: str) -> None:
    if script == "classifier_from_dataframe.py":
        pytest.importorskip("pandas")
    assert run(script, *ARGUMENTS.get(script, []))


def test_the_search_engine_finds_by_meaning(minilm: Path) -> None:
    printed = run("search_engine.py", str(minilm), "how do I catch an error?")
    assert "try" in printed or "exceptions" in printed
