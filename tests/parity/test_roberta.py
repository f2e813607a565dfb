"""RoBERTa, XLM-R and CamemBERT beside `transformers`: random small models, folders both ways."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from tests.parity.comparing import (
    close,
    draw_batch,
    from_folder,
    from_scratch,
    opened,
    padded_inputs,
    reopened,
    same_losses,
    same_states,
)

import bertie
from bertie.errors import FolderError
from bertie.models.recipe import SIZES
from bertie.models.recipes import roberta

MODELS: dict[str, tuple[Callable[..., transformers.PretrainedConfig], type, type]] = {
    "roberta": (transformers.RobertaConfig, transformers.RobertaModel, transformers.RobertaForMaskedLM),
    "xlm-roberta": (transformers.XLMRobertaConfig, transformers.XLMRobertaModel, transformers.XLMRobertaForMaskedLM),
    "camembert": (transformers.CamembertConfig, transformers.CamembertModel, transformers.CamembertForMaskedLM),
}


def random_config(seed: int, kind: str = "roberta", tied: bool = True) -> transformers.PretrainedConfig:
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 3])
    return MODELS[kind][0](
        vocab_size=draw.choice([50, 97]),
        hidden_size=heads * draw.choice([4, 8]),
        num_hidden_layers=draw.choice([1, 2, 3]),
        num_attention_heads=heads,
        intermediate_size=draw.choice([16, 40]),
        hidden_act=draw.choice(["gelu", "gelu_new", "relu"]),
        max_position_embeddings=draw.choice([32, 40]),
        type_vocab_size=draw.choice([1, 2]),
        layer_norm_eps=draw.choice([1e-12, 1e-5]),
        pad_token_id=draw.choice([0, 1, 2]),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.2,
        tie_word_embeddings=tied,
    )


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_random_configuration(seed: int, training: bool, tmp_path: Path) -> None:
    """Hidden states, logits, the loss and every gradient; half of them with segments, some with an own output table."""
    config = random_config(seed, tied=seed < 4)
    torch.manual_seed(seed)
    theirs = transformers.RobertaForMaskedLM(config).train(training)
    ours = opened(theirs, tmp_path)
    assert ours.recipe.encoder.embeddings.table("positions").offset == config.pad_token_id + 1
    longest = config.max_position_embeddings - config.pad_token_id - 1
    batch = draw_batch(seed, config.vocab_size, longest, config.type_vocab_size if seed % 2 else None)
    expected = theirs(**padded_inputs(batch, config.pad_token_id), output_hidden_states=True)
    states = same_states(ours, batch, expected)
    close(ours.heads["masked-lm"](states.values), batch.ragged("tokens").unpad(expected.logits).values)
    same_losses(ours, batch, theirs, expected, "roberta")


@pytest.mark.parametrize("kind", MODELS)
def test_saved_folder_opens_in_transformers(kind: str, tmp_path: Path) -> None:
    for number, architecture in enumerate(MODELS[kind][1:]):
        torch.manual_seed(number)
        theirs = architecture(random_config(number, kind))
        loaded = reopened(theirs, tmp_path / architecture.__name__)
        assert loaded.recipe.tokenizer == ("byte-bpe" if kind == "roberta" else "unigram")
        config = json.loads((tmp_path / architecture.__name__ / "ours/config.json").read_text())
        assert config["model_type"] == kind


@pytest.mark.parametrize(("tokenizer", "kind"), [("byte-bpe", "roberta"), ("unigram", "xlm-roberta")])
def test_recipe_from_scratch_opens_in_transformers(tokenizer: str, kind: str, tmp_path: Path) -> None:
    ours = from_scratch(roberta(SIZES["tiny"], vocab_size=300).replace(tokenizer=tokenizer), tmp_path)
    theirs = from_folder(transformers.AutoModelForMaskedLM, tmp_path)
    assert type(theirs) is MODELS[kind][2]
    batch = draw_batch(0, 300, 40)
    with torch.inference_mode():
        expected = theirs(**padded_inputs(batch, padding=1), output_hidden_states=True)
        states = same_states(ours, batch, expected)
        close(ours.heads["masked-lm"](states.values), batch.ragged("tokens").unpad(expected.logits).values)


def test_without_a_row_of_padding_there_is_no_first_position(tmp_path: Path) -> None:
    transformers.RobertaModel(random_config(0)).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "pad_token_id": None}))
    with pytest.raises(FolderError, match="sets pad_token_id to None"):
        bertie.load(tmp_path)
