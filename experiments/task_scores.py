"""How good answers are: rows with what people said, and a model's answers to them, enter; figures leave, and what each
example adds to them, so that intervals can be told later.

`python -m experiments.task_scores NAME --measure tag --rows FILE --answers FILE --out FILE`. All contenders' answers
are lines as `bertie predict` writes them, and are scored by the same code. With `--model` it is also seen to that
`bertie evaluate` says the same of that model.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.labelled_sets import Row, read_rows

from bertie.tasks.metrics.answers import SCORES, Language, answer_scores
from bertie.tasks.metrics.entities import entity_counts, f1_of_sums
from bertie.tasks.metrics.labels import f1, scores_of_counts
from bertie.tasks.metrics.numbers import pearson, spearman
from bertie.tasks.metrics.ranking import group_scores
from bertie.tasks.spacing import space_counts
from experiments.cell import Result

NEAR = 0.005  # batches of other rows round otherwise, which may turn a close decision

Answers = Sequence[dict[str, Any]]
Figures = dict[str, float]


@dataclass(frozen=True)
class Measure:
    """`examples` gives [N, S]; `score` makes of any number of them the figure `main`."""

    main: str
    examples: Callable[[Sequence[Row], Answers], np.ndarray]
    score: Callable[[np.ndarray], float]
    others: Callable[[Sequence[Row], Answers], Figures] = lambda rows, answers: {}

    def figures(self, rows: Sequence[Row], answers: Answers) -> Figures:
        return {self.main: self.score(self.examples(rows, answers)), **self.others(rows, answers)}


def mean(examples: np.ndarray) -> float:
    """Of the first column."""
    return float(examples[:, 0].mean())


def f1_of_counts(examples: np.ndarray) -> float:
    return float(f1_of_sums(examples.sum(0)))


def right(rows: Sequence[Row], answers: Answers, name: str) -> np.ndarray:
    """[N, 1]: 1 where the answer is the row's label. An answer that is an error is wrong."""
    pairs = zip(rows, answers, strict=True)
    return np.array([[float(answer.get(name) == row["label"])] for row, answer in pairs])


def f1_of_ones(rows: Sequence[Row], answers: Answers) -> Figures:
    return {"f1": f1([row["label"] for row in rows], [answer.get("label", "") for answer in answers], "1")}


def tag_counts(rows: Sequence[Row], answers: Answers) -> np.ndarray:
    """[N, 3] entities that are right, told, gold."""
    told = [answer.get("tags") or ["O"] * len(row["tags"]) for row, answer in zip(rows, answers, strict=True)]
    return entity_counts([row["tags"] for row in rows], told)


def label_counts(rows: Sequence[Row], answers: Answers) -> np.ndarray:
    """[N, 3] labels that are right, told, gold."""
    told = [(set(answer.get("labels", ())), set(row["label"])) for row, answer in zip(rows, answers, strict=True)]
    return np.array([[len(found & gold), len(found), len(gold)] for found, gold in told])


def scores_beside(rows: Sequence[Row], answers: Answers) -> np.ndarray:
    """[N, 2] gold, told."""
    return np.array([[float(row["score"]), answer["score"]] for row, answer in zip(rows, answers, strict=True)])


def cosines_beside(rows: Sequence[Row], answers: Answers) -> np.ndarray:
    """[N, 2] gold, told."""
    return np.array([[float(row["score"]), answer["cosine"]] for row, answer in zip(rows, answers, strict=True)])


def spearman_of(examples: np.ndarray) -> float:
    return spearman(examples[:, 0], examples[:, 1])


def pearson_beside(rows: Sequence[Row], answers: Answers) -> Figures:
    examples = scores_beside(rows, answers)
    return {"pearson": pearson(examples[:, 0], examples[:, 1])}


def reciprocal_ranks(rows: Sequence[Row], answers: Answers) -> np.ndarray:
    """[queries, 1]"""
    columns = ([row["query"] for row in rows], [one["score"] for one in answers], [row["relevance"] for row in rows])
    return group_scores(*columns).reciprocal_ranks[:, None]


def gold_answers(rows: Sequence[Row]) -> list[list[str]]:
    return [[answer["text"] for answer in row["answers"]] for row in rows]


def answer_overlaps(rows: Sequence[Row], answers: Answers, language: Language) -> np.ndarray:
    """[N, 1] F1 of each question."""
    score, told = SCORES[language][1], [answer.get("text", "") for answer in answers]
    return np.array([[score(gold, text)] for gold, text in zip(gold_answers(rows), told, strict=True)])


def answer_figures(rows: Sequence[Row], answers: Answers, language: Language) -> Figures:
    """Where some questions have no answer, also what never abstaining, and always abstaining, would score."""
    gold, told = gold_answers(rows), [answer.get("text", "") for answer in answers]
    figures = answer_scores(gold, told, language)
    if all(gold):
        return figures
    firsts = [answer["nbest"][0]["text"] if answer.get("nbest") else "" for answer in answers]
    others = {"always_answer": firsts, "never_answer": [""] * len(gold)}
    return figures | {name: answer_scores(gold, texts, language)["f1"] for name, texts in others.items()}


def answering(language: Language) -> Measure:
    return Measure("f1", partial(answer_overlaps, language=language), mean, partial(answer_figures, language=language))


def spaces_between(rows: Sequence[Row], answers: Answers) -> np.ndarray:
    """[N, 3] spaces that are right, told, gold."""
    return np.array([space_counts(answer["text"], row["text"]) for row, answer in zip(rows, answers, strict=True)])


def precision_and_recall(rows: Sequence[Row], answers: Answers) -> Figures:
    scores = scores_of_counts(*spaces_between(rows, answers).sum(0))
    return {name: float(scores[name]) for name in ("precision", "recall")}


MEASURES = {
    "classify": Measure("accuracy", partial(right, name="label"), mean, f1_of_ones),
    "multi": Measure("f1", label_counts, f1_of_counts),
    "similarity": Measure("spearman", scores_beside, spearman_of, pearson_beside),
    "cosine": Measure("spearman", cosines_beside, spearman_of),
    "tag": Measure("f1", tag_counts, f1_of_counts),
    "answer": answering("english"),
    "chinese-answer": answering("chinese"),
    "choice": Measure("accuracy", partial(right, name="choice"), mean),
    "rank": Measure("mrr", reciprocal_ranks, mean),
    "spaces": Measure("f1", spaces_between, f1_of_counts, precision_and_recall),
}


def scored(name: str, measure: str, rows: Sequence[Row], answers: Answers) -> Result:
    """Figures under the name of the set, so that those of several sets may stand side by side."""
    figures = MEASURES[measure].figures(rows, answers)
    examples = MEASURES[measure].examples(rows, answers).tolist()
    return {
        "figures": {f"{name}_{figure}": value for figure, value in figures.items()},
        "curves": {},
        "examples": {name: examples},
    }


def evaluated(model: Path, rows: Path) -> Figures:
    command = [sys.executable, "-m", "bertie.cli.app", "evaluate", str(model), "--data", str(rows), "--json"]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8").stdout
    figures: Figures = json.loads(printed)
    return figures


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the set")
    parser.add_argument("--measure", choices=MEASURES, required=True)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--answers", type=Path, required=True)
    parser.add_argument("--model", type=Path, help="whose answers they are")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    result = scored(options.name, options.measure, read_rows(options.rows), read_rows(options.answers))
    if options.model is not None:
        main_figure = MEASURES[options.measure].main
        told = evaluated(options.model, options.rows)[main_figure]
        found = result["figures"][f"{options.name}_{main_figure}"]
        if abs(told - found) > NEAR:
            raise SystemExit(f"bertie evaluate says {main_figure} {told:.4f}, its answers score {found:.4f}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result) + "\n", "utf-8")


if __name__ == "__main__":
    main()
