"""Runs that learn adapters: what changes, what is written, and how they go on."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import bertie
from bertie.data.rows import open_rows
from bertie.errors import SpecError
from bertie.models.answering_rows import outputs_of
from bertie.models.folder.adapter_folder import ADAPTER
from bertie.models.folder.folder import TOKENIZER_FILES
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe
from bertie.nn.feature_top import FeatureTopSpec, LSTMLayersSpec
from bertie.nn.low_rank import LowRankSpec
from bertie.tasks.classification import Classify
from bertie.tasks.labelled import Labelled
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.finetuning.finetuning import FinetuneOptions, PreparedTask, finetune, fit, task_model
from bertie.train.folder.checkpoint import OPTIMIZER, WEIGHTS
from bertie.train.learning.learning_rates import LearningSpec

Record = dict[str, Any]
SPEC = LowRankSpec(rank=4, dropout=0.1, on=("query", "value", "down"))


@pytest.fixture
def base(tokenizer: Tokenizer, recipe: Callable[..., Recipe], tmp_path: Path) -> Path:
    Pretrained(Model.new(recipe((), dropout=0.1)), tokenizer).save(tmp_path / "base")
    return tmp_path / "base"


def planted(path: Path, count: int) -> Labelled:
    rows = [{"text": f"w{5 + number % 7} w{1 + number % 2}", "label": "ab"[number % 2]} for number in range(count)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return Labelled(open_rows([path]), {"text": "text", "label": "label"})


def go(folder: Path, base: Path, epochs: int = 3, **fields: Any) -> Record:
    train, dev = planted(base.parent / "train.jsonl", 24), planted(base.parent / "dev.jsonl", 6)
    loaded = bertie.load(base)
    assert loaded.tokenizer is not None
    job = PreparedTask.of(fit(Classify(), train, "refuse"), train, dev, loaded.tokenizer, 16, "refuse")
    quick = {"optimizer": {"kind": "adamw", "rate": 1e-2}, "length": 16, "low_rank": SPEC, "keep": 9, **fields}
    return finetune(folder, loaded, [job], FinetuneOptions.of_epochs([24], epochs, 8, quick), base=str(base)).summary


def test_only_adapters_and_heads_change_and_a_rule_is_learned(base: Path, tmp_path: Path) -> None:
    summary = go(tmp_path / "run", base, epochs=12)
    assert summary["evaluation"]["accuracy"] == 1.0
    (last,) = (tmp_path / "run" / "checkpoints").glob("step-00000036")
    weights, before = load_file(last / WEIGHTS), dict(bertie.load(base).model.named_parameters())
    changed = {name for name in weights if ".updates." in name}
    assert len(changed) == 2 * 3 * 2
    assert all(weights[name].any() for name in changed), "what began as 0 is so no more"
    for name, tensor in weights.items():
        plain = name.replace(".base.", ".")
        if name in changed or name.startswith("heads."):
            continue
        same = torch.equal(tensor, before[plain])
        assert same == (not name.startswith("encoder.pooler.")), name
    learned = sum(
        weights[name].numel() for name in weights if ".updates." in name or "pooler" in name or "heads" in name
    )
    assert summary["weights"] == {"learned": learned, "all": sum(one.numel() for one in weights.values())}
    log = (tmp_path / "run" / "log.jsonl").read_text()
    assert f"learning {learned:,} of {summary['weights']['all']:,} weights" in log
    assert summary["notes"] == []


def test_the_model_is_merged_and_the_adapter_says_the_same(base: Path, tmp_path: Path) -> None:
    go(tmp_path / "run", base)
    for name in TOKENIZER_FILES:  # a run may have added words to the base's
        (base / name).unlink(missing_ok=True)
    merged, adapter = (bertie.load(tmp_path / "run" / name) for name in ("model", f"model/{ADAPTER}"))
    assert merged.report.clean and not any(".updates." in name for name, _ in merged.model.named_parameters())
    assert adapter.recipe == merged.recipe and adapter.tokenizer is not None and merged.tokenizer is not None
    assert adapter.tokenizer.digest == merged.tokenizer.digest
    other = dict(adapter.model.named_parameters())
    for name, parameter in merged.model.named_parameters():
        torch.testing.assert_close(parameter, other[name], atol=1e-6, rtol=1e-6)
    assert merged.card["base"] == adapter.card["base"] == str(base)
    assert adapter.card["length"] == 16
    config = json.loads((tmp_path / "run/model" / ADAPTER / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(base)


def test_a_base_that_others_do_not_know_is_adapted_under_our_names(base: Path, tmp_path: Path) -> None:
    loaded, over = bertie.load(base), FeatureTopSpec(lstm=LSTMLayersSpec())
    task = Classify(labels=("a", "b"))
    Pretrained(task_model(loaded, [task], 0, over), loaded.tokenizer).save(tmp_path / "own")
    summary = go(tmp_path / "run", tmp_path / "own")
    assert summary["notes"] == ["peft has no names for these adapters: they are kept under bertie's own"]
    said = []
    for folder in ("model", f"model/{ADAPTER}"):
        opened = bertie.load(tmp_path / "run" / folder)
        assert opened.tokenizer is not None and opened.recipe.encoder.top is None
        (learned,) = opened.recipe.objectives
        assert isinstance(learned, Classify)
        rows = [learned.read({"text": f"w{number} w1 w2"}, opened.tokenizer, 16) for number in range(9)]
        said.append(np.concatenate([row[0] for row in outputs_of(opened.model, learned, rows)]))
    np.testing.assert_allclose(said[0], said[1], atol=1e-6)
    assert np.ptp(said[0]) > 1e-2


def test_an_adapter_is_no_base_of_another(base: Path, tmp_path: Path) -> None:
    go(tmp_path / "run", base, epochs=1)
    adapter = tmp_path / "run" / "model" / ADAPTER
    with pytest.raises(SpecError, match=f"is itself an adapter.*; give the merged folder, {adapter.parent}$"):
        go(tmp_path / "second", adapter)
    assert not (tmp_path / "second").exists()
    lonely = adapter.rename(tmp_path / "lonely")
    with pytest.raises(SpecError, match="merge it: "):
        go(tmp_path / "second", lonely)
    go(tmp_path / "third", lonely, epochs=1, low_rank=None)


@pytest.mark.parametrize("learning", [None, LearningSpec(unfreeze_every=3, layer_decay=0.5)])
def test_a_stopped_run_goes_on_to_the_same_bits(
    learning: LearningSpec | None,
    base: Path,
    tmp_path: Path,
    stopped_after: Callable[[int], AbstractContextManager[None]],
) -> None:
    go(tmp_path / "whole", base, learning=learning)
    with stopped_after(4):
        go(tmp_path / "stopped", base, learning=learning)
    go(tmp_path / "stopped", base, learning=learning)
    files = ("model/model.safetensors", "model/adapter/adapter_model.safetensors")
    for file in (*files, f"checkpoints/step-00000009/{OPTIMIZER}"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "stopped" / file).read_bytes()
