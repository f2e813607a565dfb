"""Whatever `transformers` saves of a family opens here, and its encoder gives the same states."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import bertie
from bertie.errors import UserError
from bertie.models.folder.folder import open_folder
from bertie.tasks.task import Task

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + letter for letter in LETTERS), "the", "cat"]
TEXT = "the cat sat"
SIZES: dict[str, Any] = {
    "vocab_size": len(PIECES) + 3,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "initializer_range": 0.3,
}
OWN_NAMES = {"vocab_size": len(PIECES) + 3, "max_position_embeddings": 40}
MODERN_IDS = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 2)
FAMILIES: dict[str, dict[str, Any]] = {
    "Bert": SIZES,
    "Roberta": SIZES,
    "XLMRoberta": SIZES,
    "Camembert": SIZES,
    "Albert": {**SIZES, "embedding_size": 16},
    "Electra": {**SIZES, "embedding_size": 16},
    "DistilBert": {**OWN_NAMES, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    "XLM": {**OWN_NAMES, "emb_dim": 32, "n_layers": 2, "n_heads": 4, "pad_token_id": 0},
    "XLNet": {"vocab_size": len(PIECES) + 3, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48},
    "ModernBert": {**SIZES, **MODERN_IDS, "num_hidden_layers": 3},
}
ENDINGS = (
    *("Model", "ForMaskedLM", "ForPreTraining", "ForNextSentencePrediction", "ForCausalLM", "LMHeadModel"),
    *("ForSequenceClassification", "ForTokenClassification", "ForMultipleChoice", "WithLMHeadModel"),
    *("ForQuestionAnswering", "ForQuestionAnsweringSimple"),
)


def classes() -> Iterator[tuple[str, str]]:
    for family in FAMILIES:
        yield from ((family, family + ending) for ending in ENDINGS if hasattr(transformers, family + ending))


def save(folder: Path, family: str, name: str, *, dtype: torch.dtype = torch.float32, **options: Any) -> Any:
    """A tiny random model with a vocabulary in `folder`."""
    saving = {key: options.pop(key) for key in ("max_shard_size",) if key in options}
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**{**FAMILIES[family], **options})
    model = getattr(transformers, name)(config).eval().to(dtype)
    model.save_pretrained(folder, **saving)
    (folder / "vocab.txt").write_text("".join(piece + "\n" for piece in PIECES), "utf-8")
    return model.float()


def agrees(folder: Path, theirs: Any) -> None:
    """Compares the mean of the last states."""
    ours = bertie.load(folder)
    assert ours.tokenizer is not None
    ids = torch.from_numpy(ours.tokenizer.encode(TEXT).ids)[None]
    with torch.no_grad():
        expected = theirs.base_model(ids).last_hidden_state[0].mean(0).numpy()
    np.testing.assert_allclose(ours.encode(TEXT, pooling="mean"), expected, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("family", "name"), classes())
def test_every_class_opens(tmp_path: Path, family: str, name: str) -> None:
    agrees(tmp_path, save(tmp_path, family, name))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "options",
    [
        {"problem_type": "multi_label_classification", "num_labels": 5},
        {"problem_type": "regression", "num_labels": 1},
        {"problem_type": "regression", "num_labels": 3},
        {"id2label": {0: "no", 1: "yes"}, "label2id": {"no": 0, "yes": 1}},
        {"classifier_dropout": 0.3},
        {"num_labels": 1},
        {"dtype": torch.float16},
        {"dtype": torch.bfloat16},
        {"max_shard_size": "20KB"},
    ],
    ids=str,
)
def test_unusual_but_valid(tmp_path: Path, family: str, options: dict[str, Any]) -> None:
    agrees(tmp_path, save(tmp_path, family, f"{family}ForSequenceClassification", **options))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", [family for family in FAMILIES if hasattr(transformers, f"{family}ForMaskedLM")])
def test_weights_that_are_not_tied(tmp_path: Path, family: str) -> None:
    agrees(tmp_path, save(tmp_path, family, f"{family}ForMaskedLM", tie_word_embeddings=False))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAMILIES)
def test_legacy_weights(tmp_path: Path, family: str) -> None:
    theirs = save(tmp_path, family, f"{family}ForTokenClassification")
    (tmp_path / "model.safetensors").unlink()
    torch.save(theirs.state_dict(), tmp_path / "pytorch_model.bin")
    agrees(tmp_path, theirs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAMILIES)
def test_labels_that_disagree_with_the_weights(tmp_path: Path, family: str) -> None:
    """As many labels as the weights have outputs: 50, of which the config names two."""
    theirs = save(tmp_path, family, f"{family}ForSequenceClassification", num_labels=50)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"num_labels": 50, "id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    agrees(tmp_path, theirs)
    task = bertie.load(tmp_path).task()
    again = getattr(transformers, f"{family}ForSequenceClassification").from_pretrained(tmp_path)
    head = task.hf_head()
    assert head is not None
    assert list(head.labels) == [again.config.id2label[number] for number in range(50)]


def test_a_head_that_cannot_be_read_leaves_the_encoder(tmp_path: Path) -> None:
    theirs = save(tmp_path, "ModernBert", "ModernBertForSequenceClassification")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "classifier_pooling": "max"}))
    with pytest.warns(UserWarning, match="the model is opened without its head"):
        opened = open_folder(tmp_path)
    assert not any(isinstance(one, Task) for one in opened.model.recipe.objectives)
    agrees(tmp_path, theirs)


ODD: tuple[Any, ...] = (None, True, "32", [], {}, 0, -1, 1.5, 10**7, 10**19, 10**400, float("nan"), float("inf"), [[]])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAMILIES)
def test_no_value_of_a_config_leads_to_anything_but_a_sentence(tmp_path: Path, family: str) -> None:
    save(tmp_path, family, f"{family}ForSequenceClassification")
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    for key in config:
        for value in ODD:
            path.write_text(json.dumps({**config, key: value}))
            try:
                open_folder(tmp_path)
            except UserError as error:
                assert "\n" not in str(error), (key, value)
