"""What a config tells of labels: in which order, of which kind, and what is told of one that cannot be right."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertie.errors import FolderError
from bertie.models.folder.folder import open_folder
from bertie.models.layouts.hf_labels import OF_TOKENS, ROWS, TOKENS, label_config, labels_of, role_of, task_of
from bertie.nn.heads import SequenceHeadSpec
from bertie.tasks.answering import Answering
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Classify
from bertie.tasks.hf_head import NUMBER
from bertie.tasks.multi_label import MultiLabel
from bertie.tasks.similarity import Similarity
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Task

MakeHF = Callable[..., Any]
EditJson = Callable[..., None]


def test_labels_are_in_the_order_of_their_numbers() -> None:
    assert labels_of({"id2label": {"10": "k", **{str(n): chr(97 + n) for n in range(10)}}}) == tuple("abcdefghijk")


@pytest.mark.parametrize(("config", "count"), [({}, 2), ({"num_labels": None}, 2), ({"num_labels": 3}, 3)])
def test_labels_without_names_are_numbered(config: dict[str, Any], count: int) -> None:
    assert labels_of(config) == tuple(f"LABEL_{number}" for number in range(count))


@pytest.mark.parametrize("told", [["a", "b"], {"a": 0}, {"1": "a", "2": "b"}, "ab", 3])
def test_labels_that_are_not_counted_from_0_are_told(told: object) -> None:
    with pytest.raises(FolderError, match=r"id2label .* should name the labels from 0 on"):
        labels_of({"id2label": told})


@pytest.mark.parametrize(
    ("problem", "num_labels", "kind"),
    [
        (None, 2, Classify),
        (None, 1, Similarity),
        ("single_label_classification", 3, Classify),
        ("multi_label_classification", 3, MultiLabel),
        ("multi_label_classification", 1, MultiLabel),
        ("regression", 1, Similarity),
    ],
)
def test_which_task_it_is(problem: str | None, num_labels: int, kind: type) -> None:
    task = task_of(ROWS, {"num_labels": num_labels, "problem_type": problem}, SequenceHeadSpec())
    assert type(task) is kind
    if isinstance(task, MultiLabel):
        assert task.thresholds == (0.5,) * num_labels


def test_several_numbers_a_text_are_no_task_here() -> None:
    assert task_of(ROWS, {"num_labels": 2, "problem_type": NUMBER}, SequenceHeadSpec()) is None


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (("O", "B-PER", "I-PER"), "IOB2"),
        (("O", "I-PER"), "IOB1"),
        (("O", "B-PER", "I-PER", "E-PER", "S-PER"), "IOBES"),
        (("NOUN", "VERB"), None),
        (("LABEL_0", "LABEL_1"), None),
        (("B-PER", "L-PER", "S-PER", "M-PER"), None),
    ],
)
def test_the_scheme_of_tags(tags: tuple[str, ...], scheme: str | None) -> None:
    config = {"id2label": {str(number): tag for number, tag in enumerate(tags)}}
    task = task_of(TOKENS, config, SequenceHeadSpec())
    assert isinstance(task, Tagging) and task.scheme == scheme


def test_a_single_label_is_written_without_a_kind_of_problem() -> None:
    """`transformers` refuses such a config."""
    assert "problem_type" not in label_config(Classify(labels=("only",)))


def test_candidates_have_no_labels() -> None:
    assert label_config(Choice()) == {}


def test_a_pooler_is_of_no_use_to_tasks_of_tokens() -> None:
    assert [role_of(task) not in OF_TOKENS for task in (Classify(), Choice(), Tagging(), Answering())] == [
        True,
        True,
        False,
        False,
    ]


# A foreign folder


def test_a_folder_that_names_no_labels(tmp_path: Path, make_hf: MakeHF) -> None:
    make_hf(tmp_path, "BertForSequenceClassification")
    opened = open_folder(tmp_path)
    assert opened.report.clean
    (task,) = opened.model.recipe.objectives
    assert isinstance(task, Classify)
    assert task.labels == ("LABEL_0", "LABEL_1")


@pytest.mark.parametrize(
    ("stated", "labels", "told"),
    [
        ({"id2label": {"0": "a", "1": "b"}}, [f"LABEL_{n}" for n in range(3)], "has 2 labels, the weights have 3"),
        ({"num_labels": 50, "id2label": {"0": "a"}}, [f"LABEL_{n}" for n in range(3)], "has 1 labels, the weights"),
        ({"num_labels": 10**6}, [f"LABEL_{n}" for n in range(3)], "has 1000000 labels, the weights have 3"),
        ({"id2label": {"0": "a", "1": "b", "5": "c"}}, ["a", "b", "LABEL_2"], "does not name each of the 3 labels"),
        ({"id2label": {"0": "a", "1": "b", "2": "a"}}, ["a", "b", "LABEL_2"], "does not name each of the 3 labels"),
        ({"id2label": {"0": "a", "x": "b", "2": "c"}}, [f"LABEL_{n}" for n in range(3)], "does not name each of"),
        ({"id2label": ["a", "b"]}, [f"LABEL_{n}" for n in range(3)], "has 2 labels, the weights have 3"),
        ({"id2label": "abc"}, [f"LABEL_{n}" for n in range(3)], "has 2 labels, the weights have 3"),
    ],
)
@pytest.mark.parametrize("role", ["ForSequenceClassification", "ForTokenClassification"])
def test_the_weights_decide_how_many_labels_there_are(
    tmp_path: Path,
    make_hf: MakeHF,
    edit_json: EditJson,
    role: str,
    stated: dict[str, Any],
    labels: list[str],
    told: str,
) -> None:
    make_hf(tmp_path, f"Bert{role}", num_labels=3)
    edit_json(tmp_path / "config.json", **{"id2label": None, "label2id": None, **stated})
    with pytest.warns(UserWarning, match=told):
        opened = open_folder(tmp_path)
    assert opened.report.clean
    (task,) = opened.model.recipe.objectives
    assert isinstance(task, Task)
    head = task.hf_head()
    assert head is not None
    assert list(head.labels) == labels


@pytest.mark.parametrize("told", ["BertForTokenClassification", "BertModel", None, "", 3])
def test_a_class_that_its_tensors_do_not_bear_out(
    told: object, tmp_path: Path, make_hf: MakeHF, edit_json: EditJson
) -> None:
    make_hf(tmp_path, "BertForQuestionAnswering")
    edit_json(tmp_path / "config.json", architectures=told if told is None else [told])
    opened = open_folder(tmp_path)
    assert opened.model.recipe.objectives == ()
    assert opened.report.unused == ("qa_outputs.bias", "qa_outputs.weight")


def test_a_cross_encoder_is_told_to_leave_scores_as_they_are() -> None:
    assert label_config(Similarity())["sentence_transformers"]["activation_fn"].endswith("Identity")
    assert "sentence_transformers" not in label_config(Rank()), "a probability of relevance"
