"""Every kind of task with a handful of rows, a small tokenizer, and a tiny encoder that learns the rows by heart."""

import functools
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bertie.batch import Sample, collate
from bertie.models.answering_rows import outputs_of
from bertie.models.model import Model
from bertie.models.recipe import Recipe, Size
from bertie.models.recipes import bert
from bertie.nn.crf import CRFSpec
from bertie.tasks.answering import Answering
from bertie.tasks.aspects import Aspects
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Classify, Pair
from bertie.tasks.multi_label import MultiLabel
from bertie.tasks.siamese.siamese import Siamese
from bertie.tasks.similarity import Similarity
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Answer, Example, Task, Values
from bertie.text.tokenizers.tokenizer import Tokenizer
from bertie.text.tokenizers.vocabulary import wordpiece_tokenizer

WORDS = (
    *("good", "bad", "fine", "dull", "film", "story", "food", "service", "a", "the", "of", "is", "in", "who", "what"),
    *("where", "ann", "bob", "paris", "rome", "lives", "went", "to", "and", "cat", "dog", "sat", "barks", "purrs"),
)
PIECES = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *WORDS,
    *(letter for letter in string.ascii_lowercase + string.digits if letter not in WORDS),
    *("##" + letter for letter in string.ascii_lowercase + string.digits),
    *(
        ".",
        ",",
        "?",
        "!",
        "'",
        '"',
        "-",
        "(",
        ")",
        "中",
        "文",
        "北",
        "京",
        "在",
        "人",
        "我",
        "们",
        "去",
        "，",
        "。",
        "？",
    ),
]
LENGTH = 64
TINY = bert(Size(depth=2, width=32, num_heads=2), vocab_size=len(PIECES)).changed({"encoder.initial_std": 0.1})


@functools.cache
def tokenizer() -> Tokenizer:
    return wordpiece_tokenizer(PIECES)


def rows(roles: Sequence[str], *cells: Sequence[Any]) -> list[Values]:
    return [dict(zip(roles, row, strict=True)) for row in cells]


PASSAGE = "Ann lives in Paris, and Bob went to Rome."


def asked(question: str, answer: str | None) -> tuple[str, str, list[dict[str, Any]]]:
    """A row of questions on the passage."""
    answers = [] if answer is None else [{"text": answer, "answer_start": PASSAGE.index(answer)}]
    return question, PASSAGE, answers


TAGGED = rows(
    ("words", "tags"),
    (["Ann", "lives", "in", "Paris"], ["B-PER", "O", "O", "B-LOC"]),
    (["Ann", "Bob", "went", "to", "Rome"], ["B-PER", "I-PER", "O", "O", "B-LOC"]),
    (["the", "cat", "sat"], ["O", "O", "O"]),
    (["in", "Paris", "the", "dog"], ["O", "B-LOC", "O", "O"]),
    (["Paris", "Rome"], ["B-LOC", "I-LOC"]),
)
SCORED = rows(
    ("text", "other", "score"),
    ("a cat sat", "the cat sat", 5),
    ("a cat sat", "a dog sat", "2.5"),
    ("a cat sat", "paris is in rome", 0.0),
    ("good food", "fine food", 4),
)
TASKS: dict[str, tuple[Task, list[Values]]] = {
    "classify": (
        Classify(),
        rows(
            ("text", "label"),
            ("a good film", "very good"),
            ("a bad film", "not good"),
            ("the story is fine", "very good"),
            ("the story is dull", "not good"),
            ("the cat sat", "about a cat"),
        ),
    ),
    "pair": (
        Pair(),
        rows(
            ("text", "other", "label"),
            ("a cat", "purrs", 1),
            ("a dog", "barks", 1),
            ("a cat", "barks", 0),
            ("a dog", "purrs", 0),
        ),
    ),
    "multi-label": (
        MultiLabel(),
        rows(
            ("text", "label"),
            ("good food", "food, praise"),
            ("bad food", "food"),
            ("good service", ["praise", "service"]),
            ("the cat sat", ""),
        ),
    ),
    "aspects": (
        Aspects(aspects={"food": (), "service": ()}),
        rows(
            ("text", "food", "service"),
            ("good food and bad service", 1, "bad"),
            ("bad food and good service", -1, "good"),
            ("good food", 1, "none"),
            ("bad service", 0, "bad"),
        ),
    ),
    "similarity": (
        Similarity(),
        SCORED,
    ),
    "siamese": (
        Siamese(),
        SCORED,
    ),
    "tag": (Tagging(), TAGGED),
    "tag-crf": (Tagging(crf=CRFSpec()), TAGGED),
    "answer": (
        Answering(stride=8),
        rows(
            ("question", "passage", "answers"),
            asked("where is Ann?", "Paris"),
            asked("who went to Rome?", "Bob"),
            asked("where is the cat?", None),
            asked("where is Bob?", "Rome"),
        ),
    ),
    "choice": (
        Choice(),
        rows(
            ("text", "candidates", "label"),
            ("the cat", ["barks", "purrs"], 1),
            ("the dog", ["barks", "purrs", "is Paris"], "A"),
            ("Ann lives", ["a cat", "purrs", "in Rome", "of of of of of of"], "in Rome"),
        ),
    ),
    "rank": (
        Rank(),
        rows(
            ("text", "other", "relevance"),
            ("where is Ann?", "Ann is in Paris", 1),
            ("who barks?", "the cat purrs", False),
            ("where is Ann?", "the dog barks", 0),
            ("who barks?", "the dog barks", "yes"),
            ("where is Ann?", "Bob went to Rome", "0"),
        ),
    ),
}


@dataclass(frozen=True)
class Learned:
    task: Task
    model: Model
    examples: list[Example]
    rows: list[Values]

    @property
    def samples(self) -> list[Sample]:
        return [sample for example in self.examples for sample in example.samples]

    @property
    def gold(self) -> list[Any]:
        return [example.gold for example in self.examples]

    def answers(self) -> list[Answer]:
        return answers_to(self.task, self.model, self.examples)


def new_model(task: Task, recipe: Recipe = TINY) -> Model:
    return Model.new(recipe.replace(objectives=(task,)), seed=0).eval()


def read(task: Task, values: Values, length: int = LENGTH) -> Example:
    return task.read(values, tokenizer(), length)


def answers_to(task: Task, model: Model, examples: Sequence[Example]) -> list[Answer]:
    outputs = outputs_of(model, task, examples)
    return [task.answer(example, one) for example, one in zip(examples, outputs, strict=True)]


@functools.cache
def learned(name: str) -> Learned:
    """Without dropout, so that a few steps are enough."""
    unfitted, given = TASKS[name]
    task = unfitted.fitted(given)
    examples = [read(task, values) for values in given]
    model = new_model(task)
    batch = collate([sample for example in examples for sample in example.samples])
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    for _ in range(300):
        loss = model.loss(batch).loss()
        if float(loss.detach()) < 3e-3:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return Learned(task, model, examples, given)
