"""Every shell line and every Python block of the README runs, in the order of the page, on tiny generated data; every
file that the documentation names exists.

A Python block whose first line is a comment with a file's name is written to that file instead.
"""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import SIZES
from bertie.models.recipes import bert

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "docs/architecture.md", *sorted((ROOT / "docs/layers").glob("*.md"))]
PATH = re.compile(r"`((?:\w+/)*\w+\.py|(?:\w+/)+)`")  # in backticks: a Python file, or a folder with its slash
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.py)\n")
WORDS = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *("paris", "is", "the", "of", "france", "a", "text", "it", "rained"),
)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugins_as_before: None) -> Path:
    """A folder with a model, texts, and labelled rows. What plugins add is removed afterwards."""
    size = SIZES["tiny"].replace(depth=4)
    Pretrained(Model.new(bert(size, vocab_size=len(WORDS)))).save(tmp_path / "my-model")
    (tmp_path / "my-model/vocab.txt").write_text("\n".join(WORDS) + "\n")
    articles = (
        f"Paris number {number} is the city of France. It rained on {number * 7} days.\n" for number in range(150)
    )
    rows = [("text", "label"), *((f"{word} rained", label) for word, label in (("it", "wet"), ("a", "dry")) * 4)]
    files = {
        "texts.txt": "a text\nit rained\n\n",
        "texts.csv": "text\nit rained\na text\n",
        "articles.txt": "\n".join(articles),
        "english.txt": "".join(f"Paris number {number} is the city.\n" for number in range(40)),
        "chinese.txt": "".join(f"巴黎 {number} 是城市。\n" for number in range(40)),
        "corrections.txt": "rained: reined, raind\n",
        "options.toml": '[data]\ntrain = ["train.tsv"]\n\n[model]\nbase = "my-model"\n\n[training]\nepochs = 1.0\n',
    }
    for part in ("train", "dev", "test"):
        files[f"{part}.tsv"] = "".join(f"{text}\t{label}\n" for text, label in rows)
        files[f"{part}.conll"] = "it O\nrained B-RAIN\n\na O\ntext O\n\n" * 2
    for name, content in files.items():
        (tmp_path / name).write_text(content, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_shell_lines_and_python_blocks_run(workplace: Path, run_bertie: Callable[..., CompletedProcess[str]]) -> None:
    names: dict[str, Any] = {}
    num_blocks = {"sh": 0, "python": 0}
    for language, block in BLOCK.findall(README):
        num_blocks[language] += 1
        if language == "sh":
            for line in block.splitlines():
                command, *arguments = shlex.split(line, comments=True)
                assert command == "bertie"
                done = run_bertie(*arguments)
                assert done.returncode == 0, f"{line}\n{done.stderr}"
        elif file := FILE.match(block):
            Path(file[1]).write_text(block, "utf-8")
        else:
            exec(compile(block, f"README.md, Python block {num_blocks[language]}", "exec"), names)
    assert min(num_blocks.values()) >= 10
    assert len((workplace / "answers.jsonl").read_text("utf-8").splitlines()) == 2
    for out in ("my-run", "my-student", "my-translations", "my-task", "my-tags", "my-encoder", "my-neighbours"):
        assert (workplace / out / "model/model.safetensors").exists()
    assert (workplace / "my-adapter/model/adapter/adapter_config.json").exists()
    assert (workplace / "a-copy/model.safetensors").exists()
    assert np.load(workplace / "vectors.npy").shape == (3, SIZES["tiny"].width)
    assert names["found"].vectors.shape == (2, SIZES["tiny"].width)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_that_the_documentation_names_exist(page: Path) -> None:
    """On the page of a layer a bare name is a file of that layer."""
    package = ROOT / "src/bertie"
    paths = set(PATH.findall(page.read_text("utf-8"))) - {"compress/", "serve/"}  # to come
    missing = [
        path
        for path in paths
        if not any((folder / path).exists() for folder in (ROOT, ROOT / "src", package, package / page.stem))
        and not any((package / page.stem).rglob(path))
    ]
    assert paths and sorted(missing) == []
