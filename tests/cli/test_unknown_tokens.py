"""A text in a language that the vocabulary does not know: every command that reads it says so."""

import json
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import bertie
from bertie.models.inputs import UnknownWarning
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.text.tokenizers.tokenizer import load_tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]
CHINESE = "今天天气很好"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "film", "was", "good", "bad"]
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    tokenizer = load_tokenizer(folder)
    assert tokenizer is not None
    Pretrained(Model.new(bert(Size(depth=1, width=16, num_heads=2), tokenizer.size)), tokenizer).save(folder / "model")
    return folder / "model"


def test_every_command_that_reads_such_text_warns(base: Path, run_bertie: Run, tmp_path: Path) -> None:
    texts = [CHINESE, "很好", "the film was good", CHINESE + "!"]
    for name, written in (("zh", texts), ("en", ["the film was good", "the film was bad"] * 2)):
        rows = [{"text": text, "label": number % 2} for number, text in enumerate(written)]
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for name, warned in (("zh", True), ("en", False)):
        data, out = tmp_path / f"{name}.jsonl", tmp_path / name
        options = ("--base", base, "--train", data, "--dev", data, "--epochs", 0, "--max-length", 16)
        done = run_bertie("finetune", "classify", *options, "--out", out)
        assert done.returncode == 0, done.stderr
        assert ("are unknown to the vocabulary" in done.stderr) == warned
        assert ("unknown tokens:" in done.stderr) == warned, "the data card has it, too"
        card = json.loads((out / "data_card.json").read_text())
        assert (card["dev"]["share_unknown"] > 0.5) == warned
        text = texts[0] if warned else "the film"
        for words in (
            ("predict", out, text),
            ("predict", out, "--input", data),
            ("evaluate", out, "--data", data),
            ("embed", base, data, "--out", tmp_path / f"{name}.npy"),
            ("fill", base, f"{text} [MASK]"),
        ):
            done = run_bertie(*words)
            assert done.returncode == 0, done.stderr
            assert ("are unknown to the vocabulary" in done.stderr) == warned, words


def test_encode_warns(base: Path) -> None:
    model = bertie.load(base)
    with pytest.warns(UnknownWarning, match="100.0% of the tokens"):
        model.encode([CHINESE])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnknownWarning)
        model.encode(["the film was good"])
