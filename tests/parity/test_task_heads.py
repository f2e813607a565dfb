"""Task models beside `transformers`: all architectures and classes, folders both ways, ragged rows and padded ones."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tests.parity.comparing import close, from_folder, from_scratch, same_again, shaken
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

import bertie
from bertie.batch import Batch, Ragged
from bertie.models.answering_rows import answers_of
from bertie.models.folder.placement import HEADS
from bertie.models.model import Model
from bertie.models.pretrained import Pretrained
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import RECIPES, bert, roberta
from bertie.models.task_recipe import task_recipe
from bertie.nn.crf import CRFSpec
from bertie.nn.heads import SequenceHeadSpec, TransformSpec
from bertie.nn.pooling import FirstDenseSpec
from bertie.tasks.answering import Answering
from bertie.tasks.aspects import Aspects
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Classify, Pair
from bertie.tasks.multi_label import MultiLabel
from bertie.tasks.similarity import Similarity
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task

TINY, VOCAB_SIZE = Size(depth=2, width=16, num_heads=2), 60
LABELS, TAGS = ("no", "so", "yes"), ("O", "B-PER", "I-PER")
TASKS: dict[str, Task] = {
    "classify": Classify(labels=LABELS),
    "choice": Choice(),
    "tag": Tagging(tags=TAGS, scheme="IOB2"),
    "answer": Answering(),
}
AUTO: dict[str, Any] = {
    "classify": transformers.AutoModelForSequenceClassification,
    "choice": transformers.AutoModelForMultipleChoice,
    "tag": transformers.AutoModelForTokenClassification,
    "answer": transformers.AutoModelForQuestionAnswering,
}
FAMILIES = [
    *("bert", "roberta", "xlm-roberta", "camembert", "albert", "distilbert", "electra", "modernbert", "xlnet", "xlm"),
]
# The one of XLM looks at the outputs of another head.
CASES = [(family, kind) for family in FAMILIES for kind in TASKS if (family, kind) != ("xlm", "choice")]
WITH_SEGMENTS = ("bert", "albert", "electra", "xlnet")
ABSENT = {"xlnet": "transformer.mask_emb"}  # what the second stream begins with


# --- the same rows for both


def draw_rows(segments: bool = False) -> Batch:
    generator = torch.Generator().manual_seed(0)
    tokens = Ragged.of([torch.randint(3, VOCAB_SIZE, (length,), generator=generator) for length in (7, 1, 12, 5, 9, 3)])
    told = {"segments": tokens.with_values(tokens.positions % 2)} if segments else {}
    return Batch({"tokens": tokens, **told})


def our_logits(model: Model, batch: Batch) -> Tensor:
    """[T, classes] of tokens, [B, classes] of rows."""
    kind = model.recipe.objectives[0].kind
    states = model.encoder(batch).states
    head = model.heads[kind]
    logits: Tensor = head(states.values) if kind in ("tag", "answer") else head(model.encoder, states)
    return logits


def their_logits(theirs: Any, batch: Batch) -> Tensor:
    """In the same shapes. Choices are between two neighbouring rows."""
    config = theirs.config
    side = "left" if config.model_type == "xlnet" else "right"

    def rectangle(values: Tensor, filling: int = 0) -> Tensor:
        rows = batch.ragged("tokens").with_values(values).rows()
        padded = pad_sequence(rows, batch_first=True, padding_value=filling, padding_side=side)
        return padded.view(-1, 2, padded.shape[1]) if "MultipleChoice" in type(theirs).__name__ else padded

    tokens = batch.tensor("tokens")
    padding = 1 if hasattr(theirs, "roberta") else 0  # where positions are counted from behind it
    inputs = {"input_ids": rectangle(tokens, padding), "attention_mask": rectangle(torch.ones_like(tokens))}
    if "segments" in batch:
        inputs["token_type_ids"] = rectangle(batch.tensor("segments"))
    if getattr(config, "n_langs", 1) > 1:
        inputs["langs"] = rectangle(torch.zeros_like(tokens))
    outputs = theirs(**inputs)
    mask = inputs["attention_mask"].bool()
    if "start_logits" in outputs:
        return torch.stack([outputs.start_logits[mask], outputs.end_logits[mask]], -1)
    if "TokenClassification" in type(theirs).__name__:
        return outputs.logits[mask]
    return outputs.logits.view(-1, 1) if "MultipleChoice" in type(theirs).__name__ else outputs.logits


def same_logits(ours: Model, theirs: Any, segments: bool = True) -> None:
    batch = draw_rows(segments)
    with torch.inference_mode():
        close(our_logits(ours.eval(), batch), their_logits(theirs.eval(), batch))


# --- all architectures and classes


def recipe_of(family: str) -> Recipe:
    if family in RECIPES:
        return RECIPES[family](TINY, VOCAB_SIZE)
    return roberta(TINY, VOCAB_SIZE).changed({"name": family, "tokenizer": "unigram"})


@pytest.mark.parametrize(("family", "kind"), CASES)
def test_our_task_model_opens_there(family: str, kind: str, tmp_path: Path) -> None:
    ours = from_scratch(task_recipe(recipe_of(family), TASKS[kind]), tmp_path)
    theirs = from_folder(AUTO[kind], tmp_path, ABSENT.get(family))
    assert theirs.config.architectures == [type(theirs).__name__]
    assert theirs.config.model_type == family
    same_logits(ours, theirs, family in WITH_SEGMENTS)
    labels = {"classify": LABELS, "tag": TAGS}.get(kind)
    if labels is not None:
        assert theirs.config.id2label == dict(enumerate(labels))
        assert theirs.config.label2id == {label: number for number, label in enumerate(labels)}
    same_again(Pretrained(ours), tmp_path)


USUAL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
    "initializer_range": 0.2,
}
CONFIGS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(FAMILIES, USUAL),
    "albert": {**USUAL, "embedding_size": 12},
    "electra": {**USUAL, "embedding_size": 12},
    "distilbert": {
        "dim": 16,
        "n_layers": 2,
        "n_heads": 2,
        "hidden_dim": 24,
        "max_position_embeddings": 40,
        "initializer_range": 0.2,
    },
    "modernbert": {
        **USUAL,
        **dict.fromkeys(["bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"]),
        "pad_token_id": 0,
        "local_attention": 8,
    },
    "xlnet": {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24, "initializer_range": 0.2},
    "xlm": {"emb_dim": 16, "n_layers": 2, "n_heads": 2, "init_std": 0.2, "embed_init_std": 0.2},
}


def their_model(family: str, kind: str, **changes: Any) -> transformers.PreTrainedModel:
    config = transformers.AutoConfig.for_model(family, vocab_size=VOCAB_SIZE, **{**CONFIGS[family], **changes})
    torch.manual_seed(0)
    model = shaken(AUTO[kind].from_config(config)).eval()
    assert isinstance(model, transformers.PreTrainedModel)
    return model


def named(*labels: str) -> dict[str, Any]:
    return {"id2label": dict(enumerate(labels)), "label2id": {label: n for n, label in enumerate(labels)}}


def there_and_back(theirs: transformers.PreTrainedModel, folder: Path) -> Pretrained:
    """Opened here with the same logits, saved here, and opened there with the same tensors."""
    theirs.save_pretrained(folder / "theirs")
    loaded = bertie.load(folder / "theirs")
    assert loaded.report.clean, str(loaded.report)
    family = theirs.config.model_type
    same_logits(loaded.model, theirs, family in WITH_SEGMENTS)
    assert loaded.save(folder / "ours") == []
    again = from_folder(type(theirs), folder / "ours", ABSENT.get(family)).state_dict()
    for name, tensor in theirs.state_dict().items():
        assert name == ABSENT.get(family) or torch.equal(tensor, again[name]), name
    same_again(loaded, folder / "ours")
    return loaded


@pytest.mark.parametrize(("family", "kind"), CASES)
def test_their_task_model_opens_here(family: str, kind: str, tmp_path: Path) -> None:
    labels = {"classify": LABELS, "tag": TAGS}.get(kind, ())
    loaded = there_and_back(their_model(family, kind, **(named(*labels) if labels else {})), tmp_path)
    (task,) = loaded.recipe.objectives
    assert task.kind == kind
    if isinstance(task, Classify):
        assert task.labels == LABELS
    if isinstance(task, Tagging):
        assert (task.tags, task.scheme) == (TAGS, "IOB2")


@pytest.mark.parametrize("changes", [{"classifier_pooling": "mean"}, {"classifier_bias": True, "norm_bias": True}])
def test_variants_of_a_head_with_a_norm(changes: dict[str, Any], tmp_path: Path) -> None:
    there_and_back(their_model("modernbert", "classify", classifier_activation="silu", **changes), tmp_path)


# --- kinds of labels


def labelled(task: Task, num_rows: int) -> Tensor:
    """As the task reads them, for so many rows."""
    if isinstance(task, Classify):
        return torch.arange(num_rows) % 3
    shape = (num_rows, len(LABELS)) if isinstance(task, MultiLabel) else (num_rows,)
    return torch.rand(shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("task", "problem", "labels"),
    [
        (Classify(labels=LABELS), "single_label_classification", LABELS),
        (Pair(labels=LABELS), "single_label_classification", LABELS),
        (MultiLabel(labels=LABELS, thresholds=(0.5, 0.2, 0.7)), "multi_label_classification", LABELS),
        (Similarity(least=0, most=5), "regression", ("similarity",)),
        (Rank(), "multi_label_classification", ("relevant",)),
    ],
)
def test_every_kind_of_label_has_the_same_loss_there(
    task: Task, problem: str, labels: tuple[str, ...], tmp_path: Path
) -> None:
    ours = from_scratch(task_recipe(bert(TINY, VOCAB_SIZE), task), tmp_path)
    theirs = from_folder(transformers.BertForSequenceClassification, tmp_path)
    assert theirs.config.problem_type == problem
    assert theirs.config.id2label == dict(enumerate(labels))
    batch = draw_rows()
    told = labelled(task, 6)
    loss = ours.loss(batch.with_fields({"label": told})).loss()
    tokens = batch.ragged("tokens")
    mask = tokens.with_values(torch.ones_like(tokens.values)).pad()
    expected = theirs(tokens.pad(), mask, labels=told[:, None] if isinstance(task, Rank) else told).loss
    close(loss, expected)


def test_aspects_are_one_row_of_labels_there(tmp_path: Path) -> None:
    task = Aspects(aspects={"food": ("bad", "good"), "price": ("high", "low")})
    ours = from_scratch(task_recipe(bert(TINY, VOCAB_SIZE), task), tmp_path)
    theirs = from_folder(transformers.BertForSequenceClassification, tmp_path)
    assert theirs.config.id2label == dict(enumerate(["food: bad", "food: good", "price: high", "price: low"]))
    same_logits(ours, theirs)


# --- poolers, and what has no name there


@pytest.mark.parametrize("pooler", [None, FirstDenseSpec()])
@pytest.mark.parametrize(("family", "kind"), [("bert", "classify"), ("roberta", "classify"), ("roberta", "choice")])
def test_a_pooler_and_a_layer_of_the_head_are_the_same_there(
    family: str, kind: str, pooler: FirstDenseSpec | None, tmp_path: Path
) -> None:
    base = recipe_of(family).changed({"encoder.pooler": pooler})
    ours = from_scratch(task_recipe(base, TASKS[kind]), tmp_path)
    assert (ours.encoder.pooler is None) == (pooler is None)
    same_logits(ours, from_folder(AUTO[kind], tmp_path), family in WITH_SEGMENTS)
    same_again(Pretrained(ours), tmp_path)


@pytest.mark.parametrize(
    ("base", "tasks", "apart", "kind"),
    [
        (bert(TINY, VOCAB_SIZE), [Tagging(tags=TAGS, scheme="IOB2", crf=CRFSpec())], "pooler, tag head's crf", "tag"),
        (bert(TINY, VOCAB_SIZE), [Answering()], "pooler", "answer"),
        (bert(TINY, VOCAB_SIZE), [Classify(labels=LABELS), TASKS["tag"]], "tag head", "classify"),
    ],
)
def test_what_has_no_name_there_is_kept_apart_and_told(
    base: Recipe, tasks: list[Task], apart: str, kind: str, tmp_path: Path
) -> None:
    ours = Pretrained(Model.new(base.replace(objectives=tuple(tasks)), seed=1))
    with pytest.warns(UserWarning, match=f"transformers opens this model without its {apart}, "):
        ours.save(tmp_path)
    assert (tmp_path / HEADS).exists()
    same_logits(ours.model, from_folder(AUTO[kind], tmp_path))
    same_again(ours, tmp_path)


@pytest.mark.parametrize(
    ("family", "task"),
    [
        ("electra", Classify(labels=LABELS, head=SequenceHeadSpec(transform=TransformSpec(activation="relu")))),
        ("bert", Classify(labels=LABELS, head=SequenceHeadSpec(tokens="mean"))),
        ("modernbert", Classify(labels=LABELS)),
        ("modernbert", Answering()),
        ("bert", Tagging(tags=TAGS, transform=TransformSpec())),
        ("xlm", Choice()),
    ],
)
def test_a_head_that_computes_something_else_is_kept_apart_and_the_encoder_opens(
    family: str, task: Task, tmp_path: Path
) -> None:
    ours = Pretrained(Model.new(recipe_of(family).replace(objectives=(task,)), seed=1))
    with pytest.warns(UserWarning, match=f"without its {task.kind} head"):
        ours.save(tmp_path)
    theirs = from_folder(transformers.AutoModel, tmp_path)
    assert type(theirs).__name__.endswith("Model")
    same_again(ours, tmp_path)


@pytest.mark.parametrize(("family", "kind", "name"), [("roberta", "classify", "roberta"), ("bert", "tag", "bert")])
def test_a_pooler_that_old_folders_hold_in_vain_is_told(family: str, kind: str, name: str, tmp_path: Path) -> None:
    theirs = their_model(family, kind)
    theirs.save_pretrained(tmp_path)
    extra = {f"{name}.pooler.dense.weight": torch.zeros(16, 16), f"{name}.pooler.dense.bias": torch.zeros(16)}
    tensors = {**load_file(tmp_path / "model.safetensors"), **extra}
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    loaded = bertie.load(tmp_path)
    assert set(loaded.report.unused) == set(extra)
    same_logits(loaded.model, theirs, family in WITH_SEGMENTS)


def test_a_summary_of_another_kind_is_no_head_of_ours(tmp_path: Path) -> None:
    their_model("xlnet", "classify", summary_type="mean").save_pretrained(tmp_path)
    loaded = bertie.load(tmp_path)
    assert loaded.recipe.objectives == ()
    assert "logits_proj.weight" in loaded.report.unused


def test_dropout_goes_both_ways(tmp_path: Path) -> None:
    their_model("bert", "tag", classifier_dropout=0.3).save_pretrained(tmp_path / "theirs")
    loaded = bertie.load(tmp_path / "theirs")
    (task,) = loaded.recipe.objectives
    assert isinstance(task, Tagging)
    assert task.dropout == 0.3
    loaded.save(tmp_path / "ours")
    assert json.loads((tmp_path / "ours/config.json").read_text())["classifier_dropout"] == 0.3


# --- answers

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "mat", "dog", "ran"]


def answered(folder: Path, values: dict[str, Any]) -> dict[str, Any]:
    loaded = bertie.load(folder)
    (task,) = loaded.recipe.objectives
    assert isinstance(task, Task)
    assert loaded.tokenizer is not None
    ((_, answer),) = answers_of(loaded.model, task, [task.read(values, loaded.tokenizer, 40)])
    return answer


def test_labels_of_a_foreign_folder_are_those_of_a_pipeline(tmp_path: Path) -> None:
    theirs = their_model("bert", "classify", **named(*LABELS))
    theirs.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    tokenizer = transformers.BertTokenizer.from_pretrained(tmp_path)
    pipeline: Any = transformers.pipeline("text-classification", model=theirs, tokenizer=tokenizer, top_k=None)
    expected = {one["label"]: one["score"] for one in pipeline(["the cat sat on the mat"])[0]}
    answer = answered(tmp_path, {"text": "the cat sat on the mat"})
    assert answer["label"] == max(expected, key=lambda label: expected[label])
    assert answer["probabilities"] == pytest.approx(expected, abs=1e-5)


def test_a_foreign_folder_tags_every_word(tmp_path: Path) -> None:
    their_model("bert", "tag", **named(*TAGS)).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    answer = answered(tmp_path, {"words": ["the", "cat", "ran"]})
    assert len(answer["tags"]) == 3
    assert set(answer["tags"]) <= set(TAGS)
