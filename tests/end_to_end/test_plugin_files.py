"""A task, an objective, a visibility and a family, each from one plugin file, through the command line and from Python:
both train the same weights, and what they save opens again with the plugin and is refused without."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

import bertie
from bertie import plugins

FILES = Path(__file__).parents[1] / "plugin_files"
SENTENCES = [f"the {word} number {number} is here." for number in range(40) for word in ("cat", "dog", "house")]
STARS = [{"text": text, "stars": number % 6} for number, text in enumerate(SENTENCES[:24])]
BUDGET: dict[str, Any] = {"size": "tiny", "steps": 3, "max_length": 32, "held_out": 0}

Run = Callable[..., CompletedProcess[str]]


pytestmark = pytest.mark.usefixtures("plugins_as_before")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    bertie.train_vocab(SENTENCES, size=120, out=tmp_path / "vocab")
    bertie.build_corpus(SENTENCES, tokenizer=tmp_path / "vocab", out=tmp_path / "corpus", keep_near_duplicates=True)
    return tmp_path / "corpus"


def weights(run: Path) -> bytes:
    files = sorted((run / "model").glob("*.safetensors"))
    assert files
    return b"".join(file.read_bytes() for file in files)


def flags(options: dict[str, Any]) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def opened_without(folder: Path) -> str:
    """What opening the folder prints in a process that knows no plugin."""
    command = [sys.executable, "-m", "bertie", "inspect", "params", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 2
    return done.stderr


@pytest.mark.filterwarnings("ignore:.*transformers")
@pytest.mark.parametrize(
    ("file", "recipe", "unknown"),
    [
        ("next_token.py", "next-token", "no objective of kind 'next-token'"),
        ("every_other.py", "every-other", "no visibility of kind 'every-other'"),
        ("narrow.py", "narrow", None),
    ],
)
def test_a_recipe_is_pretrained(
    file: str, recipe: str, unknown: str | None, corpus: Path, tmp_path: Path, run_bertie: Run
) -> None:
    given = flags({"recipe": recipe, "corpus": corpus, "out": tmp_path / "shell", **BUDGET})
    done = run_bertie("pretrain", "--plugin", FILES / file, *given)
    assert done.returncode == 0, done.stderr
    plugins.use(FILES / file)
    run = bertie.pretrain(recipe, corpus=corpus, out=tmp_path / "python", **BUDGET)
    assert weights(tmp_path / "shell") == weights(tmp_path / "python")
    assert run.model.recipe.name == recipe
    if unknown is not None:
        assert unknown in opened_without(tmp_path / "shell") and "--plugin" in opened_without(tmp_path / "shell")


@pytest.mark.filterwarnings("ignore:.*transformers")
def test_a_task_is_finetuned_evaluated_and_answers(corpus: Path, tmp_path: Path, run_bertie: Run) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f"{json.dumps(row)}\n" for row in STARS))
    plugin = ("--plugin", FILES / "stars.py")
    model: dict[str, Any] = {"recipe": "bert", "size": "tiny", "tokenizer": tmp_path / "vocab", "epochs": 1}
    given = flags({"train": rows, "dev": rows, "out": tmp_path / "shell", **model})
    done = run_bertie("finetune", "stars", *plugin, *given)
    assert done.returncode == 0, done.stderr
    run = bertie.finetune("stars", train=STARS, dev=STARS, out=tmp_path / "python", **model)
    assert weights(tmp_path / "shell") == weights(tmp_path / "python")
    measured = json.loads(run_bertie("evaluate", *plugin, tmp_path / "shell", "--data", rows, "--json").stdout)
    assert measured["closeness"] == pytest.approx(run.evaluate(STARS)["closeness"])
    (answer,) = run.predict(["the cat is here."])
    printed = run_bertie("predict", *plugin, tmp_path / "shell", "the cat is here.", "--json")
    assert json.loads(printed.stdout)["stars"] == answer["stars"]
    assert "no objective of kind 'stars'" in opened_without(tmp_path / "shell")
