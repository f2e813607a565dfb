"""How sure the metrics of a task are: its answers and gold enter, each metric with a 95% interval leaves.

Rows are drawn again with replacement, as in tasks/metrics/intervals.py; of a ranking whole queries are. Whatever can be
counted row by row is counted once, so that most draws cost a sum. A task that is not known here is scored anew at each
draw, which may be slow: the time is bounded, and how many draws were made is told.

Axes: N rows, n of them drawn, K labels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from bertie.tasks.answering import Answering
from bertie.tasks.choosing import Choice, Rank
from bertie.tasks.classification import Aspects, Classify, MultiLabel
from bertie.tasks.metrics.answers import SCORES
from bertie.tasks.metrics.intervals import LEVEL, ROUNDS, Interval, draws
from bertie.tasks.metrics.labels import known_labels, matthews_of, multi_label_scores, scores_of_counts
from bertie.tasks.metrics.ranking import group_scores
from bertie.tasks.siamese import Siamese
from bertie.tasks.siamese_rows import Gold
from bertie.tasks.spacing import FIGURES, Spacing, space_counts
from bertie.tasks.tagging import Tagging
from bertie.tasks.task import Answer, Task
from bertie.tasks.vector_figures import row_figures
from bertie.text.tag_schemes import spans_of

SECONDS = 5.0
LEAST_ROUNDS = 100  # fewer draws tell nothing of the ends of an interval

Score = Callable[[np.ndarray], dict[str, float]]  # numbers [n] of what was drawn -> metrics


@dataclass(frozen=True)
class Drawing:
    size: int
    score: Score
    unit: str = "rows"  # what is drawn


@dataclass(frozen=True)
class MeasuredMetrics:
    values: Mapping[str, float]  # of all rows, as they are
    intervals: Mapping[str, Interval]  # by metric; none where the draws were too few
    num_rounds: int = 0
    unit: str = "rows"


def measured_metrics(
    task: Task, answers: Sequence[Answer], gold: Sequence[Any], *, seconds: float = SECONDS, seed: int = 0
) -> MeasuredMetrics:
    """Of no rows there is no metric."""
    if not answers:
        return MeasuredMetrics({}, {})
    values, drawing = task.score(answers, gold), drawing_of(task, answers, gold)
    drawn: list[dict[str, float]] = []
    end = monotonic() + seconds
    for numbers in (one for several in draws(drawing.size, seed, ROUNDS) for one in several):
        if monotonic() > end or not drawing.size:
            break
        drawn.append(drawing.score(numbers))
    known = [name for name in values if name in drawn[0]] if len(drawn) >= LEAST_ROUNDS else []
    intervals = {name: _interval(values[name], [one[name] for one in drawn]) for name in known}
    return MeasuredMetrics(values, intervals, len(drawn), drawing.unit)


def _interval(value: float, drawn: Sequence[float]) -> Interval:
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, float(low), float(high))


def drawing_of(task: Task, answers: Sequence[Answer], gold: Sequence[Any]) -> Drawing:
    make = next((make for kind, make in DRAWINGS.items() if isinstance(task, kind)), _scored_anew)
    return make(task, answers, gold)


def _scored_anew(task: Task, answers: Sequence[Answer], gold: Sequence[Any]) -> Drawing:
    def score(numbers: np.ndarray) -> dict[str, float]:
        drawn = numbers.tolist()
        return task.score([answers[number] for number in drawn], [gold[number] for number in drawn])

    return Drawing(len(answers), score)


def _classify(task: Classify, answers: Sequence[Answer], gold: Sequence[str]) -> Drawing:
    return Drawing(len(answers), _one_label(gold, [answer["label"] for answer in answers], task.labels))


def _aspects(task: Aspects, answers: Sequence[Answer], gold: Sequence[dict[str, str]]) -> Drawing:
    scores = {
        aspect: _one_label([one[aspect] for one in gold], [one[aspect] for one in answers], labels)
        for aspect, labels in task.aspects.items()
    }

    def score(numbers: np.ndarray) -> dict[str, float]:
        each = {aspect: of_aspect(numbers) for aspect, of_aspect in scores.items()}
        means = {name: float(np.mean([one[name] for one in each.values()])) for name in ("accuracy", "macro_f1")}
        return {**means, **{f"{aspect}.{name}": each[aspect][name] for aspect in each for name in means}}

    return Drawing(len(answers), score)


def _one_label(gold: Sequence[str], told: Sequence[str], labels: Sequence[str]) -> Score:
    """All of these metrics follow from how often which label was told for which."""
    place = {label: number for number, label in enumerate(known_labels(gold, told))}
    size = len(place)
    cells = np.array([place[one] * size + place[other] for one, other in zip(gold, told, strict=True)])  # [N]
    second = place.get(labels[1]) if len(labels) == 2 else None

    def score(numbers: np.ndarray) -> dict[str, float]:
        counts = np.bincount(cells[numbers], minlength=size**2).reshape(size, size)
        by_gold, by_told = counts.sum(1), counts.sum(0)
        f1 = scores_of_counts(np.diag(counts), by_told, by_gold)["f1"]  # [K]
        macro = float(f1[by_gold + by_told > 0].mean())
        accuracy = float(np.trace(counts)) / len(numbers)
        single = macro if len(labels) != 2 else 0.0 if second is None else float(f1[second])
        return {"accuracy": accuracy, "matthews": matthews_of(counts), "f1": single, "macro_f1": macro}

    return score


def _multi_label(task: MultiLabel, answers: Sequence[Answer], gold: Sequence[Sequence[str]]) -> Drawing:
    wanted, told = label_rows(gold, task.labels), label_rows([answer["labels"] for answer in answers], task.labels)

    def score(numbers: np.ndarray) -> dict[str, float]:
        scores = multi_label_scores(wanted[numbers], told[numbers])
        return {"f1": scores["micro_f1"], **scores}

    return Drawing(len(answers), score)


def label_rows(rows: Sequence[Sequence[str]], labels: Sequence[str]) -> np.ndarray:
    """[N, K] bool: which labels a row has."""
    return np.array([[label in row for label in labels] for row in rows], np.bool_).reshape(len(rows), len(labels))


def _tagging(task: Tagging, answers: Sequence[Answer], gold: Sequence[Sequence[str]]) -> Drawing:
    told = [answer["tags"] for answer in answers]
    num_words = np.array([len(tags) for tags in gold])  # [N]
    num_right = np.array(
        [sum(one == other for one, other in zip(*pair, strict=True)) for pair in zip(gold, told, strict=True)]
    )

    def accuracy(numbers: np.ndarray) -> float:
        return float(num_right[numbers].sum() / max(1, num_words[numbers].sum()))

    def word_scores(numbers: np.ndarray) -> dict[str, float]:
        return {"accuracy": accuracy(numbers), "f1": accuracy(numbers)}

    if task.scheme is None:
        return Drawing(len(answers), word_scores)
    counts = _span_counts(gold, told)

    def score(numbers: np.ndarray) -> dict[str, float]:
        sums = counts[numbers].sum(0)  # [K, 3]
        total, by_label = scores_of_counts(*sums.sum(0)), scores_of_counts(*sums.T)["f1"]
        known = by_label[sums.sum(1) > 0]
        single = {name: float(total[name]) for name in ("precision", "recall", "f1")}
        return {**single, "macro_f1": float(known.mean()) if len(known) else 0.0, "accuracy": accuracy(numbers)}

    return Drawing(len(answers), score)


def _spacing(task: Spacing, answers: Sequence[Answer], gold: Sequence[str]) -> Drawing:
    pairs = zip(answers, gold, strict=True)
    counts = np.array([space_counts(answer["text"], wanted) for answer, wanted in pairs])  # [N, 3]

    def score(numbers: np.ndarray) -> dict[str, float]:
        scores = scores_of_counts(*counts[numbers].sum(0))
        return {name: float(scores[name]) for name in FIGURES}

    return Drawing(len(answers), score)


def _span_counts(gold: Sequence[Sequence[str]], told: Sequence[Sequence[str]]) -> np.ndarray:
    """[N, K, 3] spans of each sentence and label that are right, that were told, that are gold."""
    pairs = [(set(spans_of(one)), set(spans_of(other))) for one, other in zip(gold, told, strict=True)]
    labels = sorted({span.label for pair in pairs for spans in pair for span in spans})
    place = {label: number for number, label in enumerate(labels)}
    counts = np.zeros((len(pairs), len(labels), 3), np.int32)
    for row, (wanted, found) in zip(counts, pairs, strict=True):
        for column, spans in enumerate((wanted & found, found, wanted)):
            for span in spans:
                row[place[span.label], column] += 1
    return counts


def _answering(task: Answering, answers: Sequence[Answer], gold: Sequence[Sequence[str]]) -> Drawing:
    pairs = list(zip(gold, [answer["text"] for answer in answers], strict=True))
    exact, shared = (np.array([score(*pair) for pair in pairs]) for score in SCORES[task.language])
    has_answer = np.array([bool(golds) for golds in gold], np.bool_)
    parts = {"": np.ones_like(has_answer), "has_answer_": has_answer, "no_answer_": ~has_answer}

    def score(numbers: np.ndarray) -> dict[str, float]:
        chosen = {prefix: numbers[part[numbers]] for prefix, part in parts.items()}
        return {
            prefix + name: float(column[drawn].mean()) if len(drawn) else 0.0
            for prefix, drawn in chosen.items()
            for name, column in (("exact_match", exact), ("f1", shared))
        }

    return Drawing(len(answers), score)


def _choice(task: Choice, answers: Sequence[Answer], gold: Sequence[int]) -> Drawing:
    right = np.array([answer["choice"] == wanted for answer, wanted in zip(answers, gold, strict=True)])
    return Drawing(len(answers), lambda numbers: {"accuracy": float(right[numbers].mean())})


def _rank(task: Rank, answers: Sequence[Answer], gold: Sequence[tuple[str, int]]) -> Drawing:
    queries, relevance = zip(*gold, strict=True)
    found = group_scores(queries, [answer["score"] for answer in answers], relevance)
    columns = {"mrr": found.reciprocal_ranks, "accuracy_at_1": found.first_right, "map": found.average_precisions}

    def score(numbers: np.ndarray) -> dict[str, float]:
        return {name: float(column[numbers].mean()) for name, column in columns.items()}

    return Drawing(len(found.reciprocal_ranks), score, "queries")


def _siamese(task: Siamese, answers: Sequence[Any], gold: Sequence[Gold]) -> Drawing:
    """A text is looked for among those of all rows, whichever are drawn."""
    if not {one.kind for one in gold} <= {"pairs", "triplets"}:
        return _scored_anew(task, answers, gold)
    columns = row_figures([answer.vectors for answer in answers], [str(one.value) for one in gold])

    def score(numbers: np.ndarray) -> dict[str, float]:
        return {name: float(column[numbers].mean()) for name, column in columns.items()}

    return Drawing(len(answers), score)


DRAWINGS: dict[type[Task], Callable[[Any, Sequence[Answer], Sequence[Any]], Drawing]] = {
    Classify: _classify,
    Aspects: _aspects,
    MultiLabel: _multi_label,
    Tagging: _tagging,
    Spacing: _spacing,
    Answering: _answering,
    Choice: _choice,
    Rank: _rank,
    Siamese: _siamese,
}
