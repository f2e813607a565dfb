"""Fine-tuning a model that has a decoder: the ordinary run trains the encoder and keeps the decoder as it was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import bertie
from bertie.data.rows.opening import open_rows
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe
from bertie.nn.attention.attention import AttentionSpec
from bertie.nn.encoder import DecoderSpec
from bertie.nn.visibility import Causal
from bertie.tasks.classification import Classify
from bertie.tasks.labelled import Labelled
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.train.finetuning.finetuning import FinetuneOptions, PreparedTask, finetune, fit


def with_decoder(recipe: Recipe) -> Recipe:
    encoder = recipe.encoder
    changes = {"block.cross": AttentionSpec(num_heads=2), "visibility": (Causal(),)}
    stack = encoder.stack.changed(changes)
    return recipe.replace(decoder=DecoderSpec(width=encoder.width, embeddings=encoder.embeddings, stack=stack))


@pytest.mark.parametrize("learning", [{}, {"layer_decay": 0.9}, {"freeze": 1}, {"unfreeze_every": 4}])
def test_the_decoder_is_kept_and_saved(
    learning: dict[str, Any], tokenizer: Tokenizer, recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    rows = [{"text": f"w{5 + n % 7} w{1 + n % 2}", "label": "two" if n % 2 else "one"} for n in range(24)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    data = Labelled(open_rows([tmp_path / "rows.jsonl"]), {"text": "text", "label": "label"})
    task = PreparedTask.of(fit(Classify(), data, "refuse"), data, data, tokenizer, 16, "refuse")
    base = Model.new(with_decoder(recipe()))
    before = {name: tensor.clone() for name, tensor in base.state_dict().items()}
    fields = {"optimizer": {"kind": "adamw", "rate": 3e-3}, "length": 16, "learning": learning or None}
    finetune(tmp_path / "run", Pretrained(base, tokenizer), [task], FinetuneOptions.of_epochs([24], 6, 4, fields))
    loaded = bertie.load(tmp_path / "run").model
    assert loaded.recipe.decoder == base.recipe.decoder
    after = loaded.state_dict()
    decoder = [name for name in before if name.startswith("decoder.stack.")]
    assert decoder and all(torch.equal(after[name], before[name]) for name in decoder)
    changed = "encoder.stack.blocks.1.feed_forward.part.up.weight"
    assert not torch.equal(after[changed], before[changed])
    table = loaded.get_parameter("encoder.embeddings.tables.tokens.weight")
    assert loaded.get_parameter("decoder.embeddings.tables.tokens.weight") is table
