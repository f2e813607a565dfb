"""`bertie finetune` where not all of a model learns: what is told, what is written, and what is refused at once."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import bertie
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Size
from bertie.models.recipes import bert
from bertie.text.tokenizers.tokenizer import load_tokenizer

Run = Callable[..., subprocess.CompletedProcess[str]]
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "food", "the", "was")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer is not None
    recipe = bert(Size(depth=2, width=32, num_heads=2), tokenizer.size).changed({"encoder.initial_std": 0.1})
    Pretrained(Model.new(recipe), tokenizer).save(tmp_path / "base")
    rows = [f"the {'film' if number % 3 else 'food'} was {'good' if number % 2 else 'bad'}" for number in range(24)]
    lines = "".join(f"{row}\t{'pos' if 'good' in row else 'neg'}\n" for row in rows)
    (tmp_path / "rows.tsv").write_text("sentence\tlabel\n" + lines)
    return tmp_path / "base"


def finetune(run_bertie: Run, base: Path, *words: object) -> subprocess.CompletedProcess[str]:
    rows = base.parent / "rows.tsv"
    files = ("--base", base, "--train", rows, "--dev", rows, "--out", base.parent / "out")
    return run_bertie("finetune", "classify", *files, "--batch", 8, "--max-length", 16, *words)


def test_adapters_are_learned_and_kept_beside_the_merged_model(
    base: Path, run_bertie: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(base.parent)
    done = finetune(run_bertie, Path("base"), "--lora", 4, "--lora-on", "query,down", "--epochs", 2)
    assert done.returncode == 0, done.stderr
    assert "the learning rate is 0.001, the default for adapters or heads alone" in done.stderr
    assert re.search(r"learning [\d,]+ of [\d,]+ weights \([\d.]+%\)", done.stderr)
    adapter = base.parent / "out" / "model" / "adapter"
    config = json.loads((adapter / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(base), "found from any folder"
    assert (config["r"], config["lora_alpha"]) == (4, 8)
    answers = [run_bertie("predict", folder, "the food was good").stdout for folder in (adapter, adapter.parent)]
    assert json.loads(answers[0])["label"] == json.loads(answers[1])["label"]
    assert bertie.load(adapter).card["length"] == 16


def test_an_epoch_between_unfreezings_is_told_in_steps(base: Path, run_bertie: Run) -> None:
    done = finetune(run_bertie, base, "--unfreeze-every", "epoch", "--layer-decay", 0.9, "--epochs", 2)
    assert done.returncode == 0, done.stderr
    assert "every 3 steps the next layer from the top joins them" in done.stderr
    options = json.loads((base.parent / "out" / "options.json").read_text())["options"]
    assert options["learning"] == {"freeze": None, "unfreeze_every": 3, "layer_decay": 0.9}
    assert options["optimizer"]["rate"] == 5e-5


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--freeze", "3"), "3 layers cannot be frozen, the model has 2"),
        (("--freeze", "all", "--lora", "4"), "leaves nothing for --lora"),
        (("--lora-alpha", "4"), "--lora-alpha needs --lora"),
        (("--features", "last", "--lora", "4"), "--features freezes the whole encoder"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], told: str, base: Path, run_bertie: Run) -> None:
    done = finetune(run_bertie, base, *words)
    assert done.returncode == 2 and told in " ".join(done.stderr.split())
    assert not (base.parent / "out").exists()
