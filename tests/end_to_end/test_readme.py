"""Every Python block and every shell line of the README runs, in a folder with a model and a few texts."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "paris",
    "is",
    "the",
    "of",
    "france",
    "a",
    "text",
    "it",
    "rained",
]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    size = SIZES["tiny"].replace(depth=4)
    Pretrained(Model.new(bert(size, vocab_size=len(WORDS)))).save(tmp_path / "my-model")
    (tmp_path / "my-model/vocab.txt").write_text("\n".join(WORDS) + "\n")
    (tmp_path / "texts.txt").write_text("a text\nit rained\n\n")
    articles = (
        f"Paris number {number} is the city of France. It rained on {number * 7} days.\n" for number in range(150)
    )
    (tmp_path / "articles.txt").write_text("\n".join(articles))
    for language, line in {"english": "Paris number {} is the city.", "chinese": "巴黎 {} 是城市。"}.items():
        (tmp_path / f"{language}.txt").write_text("".join(f"{line.format(number)}\n" for number in range(40)), "utf-8")
    rows = [("text", "label"), *((f"{word} rained", label) for word, label in (("it", "wet"), ("a", "dry")) * 4)]
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in rows))
        (tmp_path / f"{part}.conll").write_text("it O\nrained B-RAIN\n\na O\ntext O\n\n" * 2)
    (tmp_path / "texts.csv").write_text("text\nit rained\na text\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_python_blocks_run(workplace: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    assert (workplace / "a-copy/model.safetensors").exists()


def test_shell_lines_run(workplace: Path, run_bertie: Callable[..., CompletedProcess[str]]) -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
    assert len(lines) >= 6
    for line in lines:
        command, *arguments = shlex.split(line, comments=True)
        assert command == "bertie"
        done = run_bertie(*arguments)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert (workplace / "my-run/model/model.safetensors").exists()
    assert len((workplace / "answers.jsonl").read_text("utf-8").splitlines()) == 2
    for out in ("my-student", "my-translations", "my-task", "my-tags"):
        assert (workplace / out / "model/model.safetensors").exists()
    assert np.load(workplace / "vectors.npy").shape == (3, SIZES["tiny"].width)
